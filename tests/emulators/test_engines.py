"""The four runs of the tests of targets on the warehouses that people use, in both namings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulators.compared import compare_answers, compare_with_the_api
from emulators.engines import ENGINES
from support.recordings import each

if TYPE_CHECKING:
    from pathlib import Path

    from emulators.engines import Emulated


@each(ENGINES)
def test_every_value_and_type_is_right_after_every_run(target: Emulated, tmp_path: Path) -> None:
    compare_with_the_api(target, tmp_path)


@each([it for it in ENGINES if it.column_naming == "snake_case"])
def test_the_queries_answer(target: Emulated, tmp_path: Path) -> None:
    compare_answers(target, tmp_path)
