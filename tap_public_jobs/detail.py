"""One detail: how its path is written, whether an answer is it, and what it tells of its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from tap_public_jobs.ledger import fingerprint
from tap_public_jobs.listing import Job

if TYPE_CHECKING:
    from collections.abc import Collection

Json = Any


class Answer(NamedTuple):
    """What came of asking for one detail: a document, an error, or neither for a 404."""

    job: Job
    document: dict[str, Json] | None = None
    error: Exception | None = None


def path_segment(public_id: str) -> str:
    """Encode a string as one segment of a path (RFC 3986, section 3.3).

    A segment of dots alone would be read as this folder or the one above.
    """
    encoded = quote(public_id, safe="")
    return encoded.replace(".", "%2E") if not encoded.strip(".") else encoded


def is_detail_of(job: Job, document: dict[str, Json]) -> bool:
    """Tell whether a detail is this job's; which fields it always has is not documented."""
    key = document.get("id")
    has_key = isinstance(key, str) and bool(key)
    if has_key and (job.fingerprint or key == job.id):
        return bool(key == job.id)
    # Of a job that only a webhook named: it may be another one under the same publicId.
    return (has_key or bool(job.id)) and bool(document.get("publicId") == job.public_id)


def completed(job: Job, document: dict[str, Json], listed: Collection[str]) -> Job:
    """Fill in what a webhook does not tell of a job.

    Args:
        job: Without a fingerprint if it is not from the list, and without an id if it is new.
        document: Its detail.
        listed: The fields that the list shows. If it shows more than are documented, the job looks
            changed once it is listed, and is fetched once more.
    """
    if job.fingerprint:
        return job
    summary = {field: value for field, value in document.items() if field in listed}
    return Job(document.get("id") or job.id, job.public_id, fingerprint(summary))
