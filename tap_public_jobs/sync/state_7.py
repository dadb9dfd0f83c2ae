"""Reads a state of format 7, so that a project of that time keeps its dates and its details.

0.2.0 is to remove this module.
"""

from tap_public_jobs.api.models import Json

FORMAT = 7

# In place of a row's hash: the detail is to be fetched, or lacked a change that the list showed.
PENDING, LAGGING = "", "lagging"


def converted(state: Json) -> Json:
    """Return a state of format 7 in format 8, of which no type is checked.

    What it lacks, runs find out: the hash of each detail, and a sample of the list.
    """
    last_read = state["log"]
    return {
        **state,
        "format": 8,
        "jobs": [_published(row, state["listedAt"]) for row in state["jobs"]],
        "closed": [_closed(row) for row in state["closed"]],
        "log": last_read and last_read[:2],  # the third says since when the log has missed nothing
    }


def _published(row: Json, listed_at: Json) -> Json:
    job_id, public_id, opened_after, first_seen, last_seen, row_hash, fetched_at, *since = row
    # A list that was not complete dated a job, too. Its record was written with the next complete
    # list; until then, that list is to date it.
    if listed_at is None or first_seen > listed_at:
        first_seen = last_seen = None
    is_owed = row_hash in {PENDING, LAGGING}
    detail = ["" if is_owed else row_hash, "", fetched_at, "again" if is_owed else "no"]
    return [job_id, public_id, opened_after, first_seen, last_seen, *detail, *since]


def _closed(row: Json) -> Json:
    *publication, _, _, closed_at, _, unpublished_at, is_written = row
    if unpublished_at is None:
        msg = "a closed job without a closing"
        raise ValueError(msg)
    return [*publication, unpublished_at, closed_at, is_written]
