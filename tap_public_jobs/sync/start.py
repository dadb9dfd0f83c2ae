"""The start of a run: is there work, what does the list show, and which details are to fetch."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from tap_public_jobs.api.models import JobRef
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.sync.gaps import HOUR, Gaps
from tap_public_jobs.sync.listing import ListReader
from tap_public_jobs.sync.plan import DAY, begin_cycle, has_work, is_covered, plan_details
from tap_public_jobs.sync.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tap_public_jobs.changelog import Changes
    from tap_public_jobs.sync.listing import Listing
    from tap_public_jobs.sync.plan import Refresh
    from tap_public_jobs.sync.services import Services
    from tap_public_jobs.sync.state import Form, SyncState

logger = logging.getLogger(__name__)

OTHER_ORGANISATION = (
    "api_key has changed, and the API lists none of the {:,} jobs that were synced before: the key "
    "seems to belong to another organisation. Set api_key back, or give each organisation its own "
    "state and schema; to replace the contents of the tables, run once with --full-refresh."
)


def start_run(
    services: Services, state: SyncState, changes: Changes | None, forms: Mapping[str, Form]
) -> Run | None:
    """Decide whether there is work, and if so, read the list.

    Args:
        services: What the run works with.
        state: What earlier runs know; this run adds to it.
        changes: What the change log says, read before the list, so that the list and the details
            show everything notified until then.
        forms: Per stream that the run writes, what its records are made of.

    Returns:
        None if there is no work.

    Raises:
        PublicJobsError: The list cannot be read.
    """
    now, max_age = services.clock(), services.max_age
    if services.refresh == "notified":
        if not has_work(state, changes, now, forms):
            logger.info("The change log has no news since the last run: nothing to fetch.")
            return None
        if is_covered(state, changes):
            max_age = math.inf  # webhooks name what changes
        elif state.listed_at is not None:
            logger.info(
                "The change log does not cover everything since the last run; running as "
                "detail_refresh: changed."
            )
    gaps = Gaps(state.gaps, services.clock)
    state.keep_confirmed(now - HOUR, now)
    reader = ListReader(services, state, gaps)
    listing = _read_list(reader, state, changes, now)
    if state.note_forms(forms):
        logger.info("The selected columns changed; fetching all details again.")
    writes_details = "details" in {form.shows for form in forms.values()}
    kind: Refresh = "all" if services.refresh == "all" else "changed"
    is_resumed = begin_cycle(state, kind if writes_details else "none", now)
    if is_resumed:
        logger.info("Resuming the last run: fetching only the details that it did not fetch.")
    _ask_for_awaited(reader, state, now)
    # After a lost state nothing confirms an empty list: without a version it empties no table.
    if listing.jobs or state.versions:
        state.begin_versions(now, is_resumed=is_resumed)
    plan = plan_details(state, listing.jobs.values(), now, max_age, reader.details)
    return Run(services, state, gaps, listing, plan, reader.details)


def _read_list(
    reader: ListReader, state: SyncState, changes: Changes | None, now: float
) -> Listing:
    """Read the list, and note what it shows, and what the change log names."""
    services, began_at = reader.services, state.next_listing_time(now)
    sweep = reader.sweep(reader.gaps.of_jobs("missing"))
    is_new_key = state.key_hash not in {"", services.key_hash}
    if is_new_key and state.jobs and state.jobs.keys().isdisjoint(reader.jobs):
        raise PublicJobsError(OTHER_ORGANISATION.format(len(state.jobs)))
    listing = reader.find(sweep)
    if changes:
        state.note_changes(changes, now)
    if state.listed_at is not None:
        services.report.opened = len(listing.jobs.keys() - state.jobs.keys())
    services.report.closed = len(listing.gone)
    state.key_hash = services.key_hash
    state.note_listing(listing, began_at)
    return listing


def _ask_for_awaited(reader: ListReader, state: SyncState, now: float) -> None:
    """Ask for the jobs that the log named, and no list has shown; a 404 ends the wait."""
    for job, why in reader.ask([JobRef("", public_id) for public_id in [*state.awaited]]):
        is_late = now - state.awaited[job.public_id] > DAY
        if why:
            line = "The list does not show the job %r, which a webhook named (%s): %s."
            then = "no longer waiting for it" if is_late else "the next run looks again"
            logger.log(logging.WARNING if is_late else logging.INFO, line, job.public_id, why, then)
        if is_late or not why:
            del state.awaited[job.public_id]
