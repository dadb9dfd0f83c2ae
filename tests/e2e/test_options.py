"""Stream maps, flattening, BATCH files and selected columns, as far as the warehouse."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import Pipe, Warehouse, exact
from e2e.targets import MELTANOLABS_POSTGRES, MELTANOLABS_TYPES, METADATA, Postgres, psycopg_url
from e2e.truth import COLUMNS, DETAIL, JSON_TYPES, SUMMARY, in_order, published, rows
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.pipeline import Project, Row, Run, Settings
    from public_jobs_sandbox.postings import Job


@dataclass
class Postings:
    """A served sandbox with a few jobs, and what settings reach it."""

    sandbox: Sandbox
    settings: Settings

    def unpublish(self) -> Job:
        """Unpublish the first job."""
        job = published(self.sandbox)[0]
        self.sandbox.unpublish(job["publicId"])
        return job


@pytest.fixture
def postings() -> Iterator[Postings]:
    sandbox = Sandbox.demo(jobs=6, options=Options(limited=False))
    with serving(sandbox) as base_url:
        yield Postings(
            sandbox,
            {
                "api_key": sandbox.key,
                "base_url": base_url,
                "rate_limit_requests": 100_000,
                "column_naming": "snake_case",
            },
        )


@pytest.fixture
def pipe(tmp_path: Path) -> Pipe:
    return Pipe(tmp_path, MELTANOLABS_POSTGRES, "target-postgres")


@pytest.fixture
def target(database: str, request: pytest.FixtureRequest) -> Settings:
    """Soft deletes into a schema that has the test's name."""
    return {
        "sqlalchemy_url": psycopg_url(database),
        "default_target_schema": request.node.name,
        "hard_delete": False,
    }


@pytest.fixture
def store(database: str, target: Settings) -> Postgres:
    return Postgres(database, target["default_target_schema"])


def done(run: Run) -> Run:
    assert run.status == 0, run.output
    return run


def marked(before: list[Job], gone: Job, table: str) -> list[Row]:
    """The rows of jobs, one of which is no longer published."""
    found = {key: row | {"deleted": False} for key, row in rows(before, table).items()}
    found[gone["id"]] |= {"is_published": False, "deleted": True}
    return in_order(found)


def test_stream_maps_rename_drop_and_hash(
    postings: Postings, pipe: Pipe, target: Settings, store: Postgres
) -> None:
    """Also the row of an unpublished job is marked, whose columns the map cannot be given."""
    maps = {
        "jobs": {
            "title": "job_title",
            "job_title": "__NULL__",
            "location": "__NULL__",
            "public_id": "md5(public_id)",
        },
        "job_details": None,
    }
    before = published(postings.sandbox)

    def mapped(row: Row) -> Row:
        row["title"] = row.pop("job_title")
        row["public_id"] = hashlib.md5(row["public_id"].encode()).hexdigest()  # noqa: S324
        del row["location"]
        return row

    done(pipe.run(postings.settings | {"stream_maps": maps}, target))
    expected = in_order(rows(before, "jobs"))
    assert store.rows("jobs") == [mapped(row) | {"deleted": False} for row in expected]
    gone = postings.unpublish()
    done(pipe.run(postings.settings | {"stream_maps": maps}, target))

    assert store.rows("jobs") == [mapped(row) for row in marked(before, gone, "jobs")]
    names = {*SUMMARY.values(), "is_published", "additional_fields", "title"}
    types = JSON_TYPES | {"title": "string"}
    assert store.types("jobs") == METADATA | {
        name: MELTANOLABS_TYPES[types[name]] for name in names - {"job_title", "location"}
    }


def test_flattening_makes_text_of_what_is_nested(
    postings: Postings, pipe: Pipe, target: Settings, store: Postgres
) -> None:
    tap = postings.settings | {"flattening_enabled": True, "flattening_max_depth": 1}
    before = published(postings.sandbox)

    done(pipe.run(tap, target))
    gone = postings.unpublish()
    done(pipe.run(tap, target))

    found = store.rows("job_details")
    for row in found:
        for name in ("knockout_questions", "additional_fields"):
            assert isinstance(row[name], str)
            row[name] = exact(row[name])
    assert found == marked(before, gone, "job_details")
    names = [*DETAIL.values(), "is_published", "additional_fields"]
    types = JSON_TYPES | {"knockout_questions": "string", "additional_fields": "string"}
    assert store.types("job_details") == METADATA | {
        name: MELTANOLABS_TYPES[types[name]] for name in names
    }


def test_batch_files_hold_every_row_and_are_loaded(
    postings: Postings, pipe: Pipe, target: Settings, store: Postgres, tmp_path: Path
) -> None:
    """They have no versions: no row is removed, and the flag tells what is unpublished."""
    files = tmp_path / "files"
    files.mkdir()
    batch = {
        "encoding": {"format": "jsonl", "compression": "gzip"},
        "storage": {"root": files.as_uri()},
        "batch_size": 4,
    }
    before = published(postings.sandbox)

    def written(table: str) -> list[Row]:
        """The rows of a table's files, which are left behind."""
        found: list[Row] = []
        for file in files.glob(f"tap-public-jobs--{table}-*"):
            with gzip.open(file, "rt", encoding="utf-8") as lines:
                found += [exact(line) for line in lines]
            file.unlink()
        return sorted(found, key=lambda row: str(row["id"]))

    done(pipe.run(postings.settings | {"batch_config": batch}, target))
    for table in COLUMNS:
        expected = in_order(rows(before, table))
        assert written(table) == expected
        assert store.rows(table) == [row | {"deleted": False} for row in expected]
    gone = postings.unpublish()
    postings.sandbox.edit(before[1]["publicId"], minSalary=0.1)
    done(pipe.run(postings.settings | {"batch_config": batch | {"batch_size": 100}}, target))

    now = published(postings.sandbox)
    for table in COLUMNS:
        assert written(table) == in_order(rows(now, table))
        flagged = rows([gone], table)[gone["id"]] | {"is_published": False}
        expected = in_order(rows(now, table) | {gone["id"]: flagged})
        assert store.rows(table) == [row | {"deleted": False} for row in expected]


def test_selected_columns_arrive_whole_though_they_are_all_text(
    project: Project, postings: Postings, tmp_path: Path
) -> None:
    """With DuckDB 1.1 or later, target-duckdb takes the first row of such a table for a header.

    Without is_published, nothing tells that a job is no longer published.
    """
    selected = ["id", "public_id", "job_title"]
    warehouse = Warehouse(tmp_path)
    before = published(postings.sandbox)
    expected = [{name: row[name] for name in selected} for row in in_order(rows(before, "jobs"))]
    for _ in range(2):
        run = project.sync(
            postings.sandbox,
            postings.settings["base_url"],
            warehouse,
            TAP_PUBLIC_JOBS__SELECT=json.dumps([f"jobs.{name}" for name in selected]),
        )

        assert done(run)
        assert warehouse.rows("jobs") == expected
        assert warehouse.types("jobs") == dict.fromkeys(selected, "VARCHAR")
        postings.unpublish()
    assert {request.path for request in postings.sandbox.requests} == {"/api/public/v1/jobs"}
