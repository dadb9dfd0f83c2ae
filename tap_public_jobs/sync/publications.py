"""Records of `job_publications`: when each job was published and unpublished."""

from datetime import UTC, datetime
from typing import Any

from tap_public_jobs.sync.state import Publication


def publication_record(job_id: str, job: Publication) -> dict[str, Any]:
    """Return the fields of one record; times are UTC with milliseconds (RFC 3339)."""
    return {
        "id": job_id,
        "publicId": job.public_id,
        "openedAfter": _utc(job.opened_after),
        "firstSeenAt": _utc(job.first_seen),
        "lastSeenAt": _utc(job.last_seen),
        "unpublishedAt": _utc(job.unpublished_at),
    }


def _utc(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
