"""Records of `job_publications`, and their times."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from tap_public_jobs import schemas
from tap_public_jobs.records.publications import publication
from tap_public_jobs.sync.state import Period

MOMENT = 1_795_300_734_009
"""Milliseconds since the epoch."""


def test_a_record_has_the_columns_of_the_schema_and_the_times_of_a_job() -> None:
    period = Period("public-x", None, MOMENT, MOMENT + 1, MOMENT + 86_400_000)
    schema = resources.files(schemas).joinpath("job_publications.json").read_text("utf-8")

    record = publication("x", period)

    assert list(record) == list(json.loads(schema)["properties"])
    assert record == {
        "id": "x",
        "publicId": "public-x",
        "openedAfter": None,
        "firstSeenAt": "2026-11-21T22:38:54.009Z",
        "lastSeenAt": "2026-11-21T22:38:54.010Z",
        "unpublishedAt": "2026-11-22T22:38:54.009Z",
    }


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (1, "1970-01-01T00:00:00.001Z"),
        (1_798_761_600_000, "2027-01-01T00:00:00.000Z"),
        (100_000_000_000_000, "5138-11-16T09:46:40.000Z"),
    ],
)
def test_times_are_utc_with_milliseconds(milliseconds: int, text: str) -> None:
    """RFC 3339. Of one form, so that text sorts by time too."""
    period = Period("public-x", milliseconds, 0, 0, None)

    assert publication("x", period)["openedAfter"] == text
