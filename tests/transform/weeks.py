"""Thirteen weeks of an organisation, and the charts of them that the pages show.

`PYTHONPATH=tests uv run python -m transform.weeks` draws these charts again, in a minute.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from public_jobs_sandbox.postings import make_jobs
from transform.portal import opened
from transform.test_history import HISTORY_ALONE, WITHOUT_TESTS
from transform.warehouses import REPOSITORY, DuckDB

from charts.history import draw

if TYPE_CHECKING:
    from transform.portal import Portal

FIRST_WEEK = datetime(2026, 8, 3, 4, tzinfo=UTC)
WEEKS = 13
BUILD_EVERY = 6
DOCS = REPOSITORY / "docs"


def draw_weeks(folder: Path) -> list[Path]:
    """Live through the weeks with the real tap, target and dbt; returns the charts of them."""
    warehouse = DuckDB(folder)
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        opened(warehouse, folder, monkeypatch, mode="changed", jobs=60) as portal,
    ):
        live(portal)
        portal.build(*WITHOUT_TESTS)
    return draw(Path(warehouse.file), folder)


def live(portal: Portal) -> None:
    """Sync each week, after some roles have opened, closed or changed their pay."""
    random = Random(1)  # noqa: S311  # the same weeks each time
    new = iter(make_jobs(200, seed=5))
    for week in range(WEEKS):
        portal.now = FIRST_WEEK + timedelta(weeks=week)
        if week:
            portal.build(*HISTORY_ALONE) if week % BUILD_EVERY == 1 else None
            for _ in range(random.randint(0, 12)):
                portal.publish(next(new))
            # The oldest ones, which a build has seen.
            oldest = portal.sandbox.organisation.published()[:40]
            for posting in random.sample(oldest, random.randint(0, 9)):
                portal.unpublish(portal.public_ids.index(posting.job["publicId"]))
            for edited in random.sample(portal.sandbox.organisation.published(), 2):
                factor = random.choice([0.95, 1.02, 1.03, 1.05, 1.08])
                pay = {"maxSalary": round(edited.job["maxSalary"] * factor)}
                portal.edit(portal.public_ids.index(edited.job["publicId"]), **pay)
        portal.sync()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for chart in draw_weeks(Path(name)):
            (DOCS / chart.name).write_bytes(chart.read_bytes())
