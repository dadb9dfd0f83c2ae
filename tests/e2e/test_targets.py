"""Four runs into each target: every row, every value and every type is what the API has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import Tap
from e2e.targets import TARGETS
from support.recordings import each, load_and_compare, record

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.targets import Target
    from support.recordings import Recording


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    """What the tap wrote in each run, for every target to load."""
    return record(Tap(tmp_path_factory.mktemp("tap")))


@each(TARGETS)
def test_every_value_and_type_is_right_after_every_run(
    target: Target, recordings: dict[str, Recording], database: str, tmp_path: Path
) -> None:
    load_and_compare(target, recordings, database, tmp_path)
