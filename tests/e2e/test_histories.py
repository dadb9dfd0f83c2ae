"""A dozen of the random histories that `python -m tests.histories` lives through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from histories.history import History

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed {seed}") for seed in range(12)])
def test_whatever_happens_the_tables_are_what_the_api_has(
    seed: int, database: str, tmp_path: Path
) -> None:
    History(seed, tmp_path, database).play()
