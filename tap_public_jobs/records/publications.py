"""Records of `job_publications`: when each job was published and unpublished."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tap_public_jobs.sync.state import Period


def publication(job_id: str, period: Period) -> dict[str, Any]:
    """Return the fields of one record; times are UTC with milliseconds (RFC 3339)."""
    return {
        "id": job_id,
        "publicId": period.public_id,
        "openedAfter": _utc(period.opened_after),
        "firstSeenAt": _utc(period.first_seen),
        "lastSeenAt": _utc(period.last_seen),
        "unpublishedAt": _utc(period.unpublished_at),
    }


def _utc(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)  # rounds to microseconds
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
