"""A dozen of the random histories that `python -m tests.histories` lives through."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from histories.history import History
from histories.warehouses import Programs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with closing(Programs()) as programs:
        yield programs


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed {seed}") for seed in range(12)])
def test_whatever_happens_the_tables_are_what_the_api_has(
    seed: int, programs: Programs, database: str, tmp_path: Path
) -> None:
    History(seed, programs, tmp_path, database).play()
