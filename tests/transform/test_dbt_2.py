"""A candidate of dbt 2, whose releases download parts of themselves: the tables are the same."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import installed
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from support.expected import TABLES, History, assert_holds
from support.portal import opened
from support.warehouses import DuckDB, run_dbt
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DBT = "dbt==2.0.0rc196"
LIBRARY = "bareduckdb==0.12.155"  # a package that has DuckDB as a library

pytestmark = pytest.mark.e2e


class WithDbt2(DuckDB):
    """A file in which dbt 2 builds."""

    @override
    def dbt(self, *arguments: str) -> tuple[int, str]:
        library = self.folder / "library"
        if not library.exists():
            command = [*uv_command(), "pip", "install", "--quiet", "--no-deps", LIBRARY]
            # It has no wheels for older Pythons, and none of its Python is used.
            command += ["--python-version", "3.12", "--target", str(library)]
            subprocess.run(command, check=True)

        def run(
            arguments: Sequence[str | Path], variables: Mapping[str, str], folder: Path
        ) -> subprocess.CompletedProcess[str]:
            found = {"LD_LIBRARY_PATH": str(library / "bareduckdb" / "_libs")}
            return subprocess.run(
                [installed(DBT) / "dbt", *arguments],
                env={**variables, **found},
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )

        return run_dbt(
            run, self.folder, self.project, *arguments, "--target", "duckdb", **self.variables
        )


def test_dbt_2_builds_the_same_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the unit tests, and again, because an incremental table compares its columns then.

    The tap has run for a week before the first build.
    """
    warehouse = WithDbt2(tmp_path)
    with opened(warehouse, monkeypatch) as portal:
        portal.edit(1, department="", minSalary=0, maxSalary=61000.5)
        portal.edit(2, note="some text", requiredSkills=["patience", ""])
        portal.day(-6)
        portal.sync()
        for day in (1, 2, 3):
            portal.day(day)
            if day > 1:
                portal.edit(3, jobTitle=f"Retitled on day {day}", minSalary=50_000 * day)
                portal.publish(make_jobs(1, seed=day)[0])
                portal.unpublish(day + 3)
            portal.sync()
            before = datetime.now(UTC).replace(tzinfo=None)
            status, output = warehouse.dbt("build")
            assert status == 0, output
            portal.listings[-1].built = True
    for table in TABLES:
        assert_holds(warehouse, table, History(portal.listings))
    times = [it["dbt_valid_from"] for it in warehouse.rows("analytics_history.listing_history")]
    assert before < max(times) < before + timedelta(hours=1)
