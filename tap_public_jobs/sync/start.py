"""The start of a run: is there work, what does the list show, and which details are to fetch."""

import logging
import math
from collections.abc import Mapping

from tap_public_jobs.api.models import OTHER_POSTINGS, JobRef
from tap_public_jobs.changes import Changes
from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import quoted
from tap_public_jobs.sync.context import RunContext
from tap_public_jobs.sync.listing import ListReader
from tap_public_jobs.sync.outcomes import Outcomes
from tap_public_jobs.sync.plan import begin_cycle, has_work, is_covered, is_open, plan_details
from tap_public_jobs.sync.run import Run
from tap_public_jobs.sync.sample import differences, sample_of
from tap_public_jobs.sync.state import DAY, Listing, SyncState

logger = logging.getLogger(__name__)

# From this many changed details on, and more than half of all, a run looks for the field behind it.
FEWEST_CHANGED = 5

# Seconds. A replica of the API may lag behind its webhooks by this much.
REPLICA_LAG = 600

MANY_CHANGED = (
    "%d of the %d jobs in the list changed, so their details are fetched again. In most of the "
    "jobs that were compared field by field (%d), these differ from the last run: %s. If one "
    "changes all the time, name it in ignored_fields."
)

OTHER_ORGANISATION = (
    "api_key has changed, and the API lists none of the {:,} jobs that were synced before, so the "
    "key seems to belong to another organisation. Set api_key back, or give each organisation its "
    "own state and schema. To replace the contents of the tables, which begins their history anew, "
    "run once with meltano run --full-refresh."
)


def start_run(
    context: RunContext, state: SyncState, changes: Changes | None, forms: Mapping[str, str]
) -> Run | None:
    """Decide whether there is work, and if so, read the list.

    Args:
        context: What the run is given.
        state: What earlier runs know; this run adds to it.
        changes: What the notification log says, read before the list, so that the list and the
            details show everything notified until then.
        forms: Per stream that the run writes, what its records are made of.

    Returns:
        None if there is no work.

    Raises:
        PublicJobsError: The list cannot be read, or it seems to be of another organisation.
    """
    now = int(context.clock())
    state.update_evidence(now)
    reader = ListReader(context, state, now)
    if state.key_hash == context.key_hash:  # for another organisation's key, all would be 404
        _ask_for_awaited(reader)
    if context.refresh == "notified":
        if not has_work(state, changes, now, forms):
            logger.info("The notification log has no news since the last run: nothing to fetch.")
            return None
        if state.listed_at is not None and not is_covered(state, changes):
            logger.info(
                "The notification log does not cover everything since the last run; running as "
                "detail_refresh: changed."
            )
    # Before the list is read: a job that is first found missing in this run reopens no cycle.
    was_open = is_open(state, now)
    listing = _read_list(reader, changes)
    before = state.forms.get("job_details")
    if before and forms.get("job_details", before) != before:
        logger.info("The selected columns changed; fetching all details again.")
    state.note_forms(forms)
    cycle = begin_cycle(state, "all" if context.refresh == "all" else "changed", was_open=was_open)
    if state.jobs or state.cycle:  # else no list has ever shown a job
        state.cycle = cycle
    if cycle.started_at < state.run_time:
        logger.info("Resuming the last run: fetching only the details that it did not fetch.")
    last_read = state.last_read if context.refresh == "notified" else None
    covered_since = last_read.covered_since if last_read else math.inf
    plan = plan_details(state, listing, cycle, context.max_age, covered_since)
    changed = sum(reason == "changed" for reason in plan.values())
    last_sample, state.sample = state.sample, sample_of(listing.jobs)
    fields = differences(last_sample, state.sample, context.ignored_fields)
    if fields and changed > max(FEWEST_CHANGED, len(listing.jobs) / 2):
        names = ", ".join(map(quoted, fields))
        logger.warning(MANY_CHANGED, changed, len(listing.jobs), len(last_sample), names)
    _warn_of_shared_ids([*listing.jobs.values()])
    return Run(context, state, now, listing, plan, Outcomes(state.outage_since(now)))


def _read_list(reader: ListReader, changes: Changes | None) -> Listing:
    """Read the list, and note what it shows, and what the notification log names."""
    context, state, now = reader.context, reader.state, reader.now
    run_time = max(now, state.run_time + 1)
    if run_time > now + DAY:
        logger.warning(
            "The clock was %d days ahead in an earlier run. Until it gets there, runs are dated a "
            "second apart, and details do not expire.",
            (run_time - now) // DAY,
        )
    reader.read()
    is_new_key = state.key_hash not in {"", context.key_hash}
    if is_new_key and state.jobs and state.jobs.keys().isdisjoint(reader.jobs):
        raise SetupError(OTHER_ORGANISATION.format(len(state.jobs)))
    listing = reader.resolve_unlisted()
    if changes:
        state.note_changes(changes, now, is_covered=is_covered(state, changes))
    if state.listed_at is not None:
        context.report.opened = len(listing.jobs.keys() - state.jobs.keys())
    context.report.closed = len(listing.gone)
    state.key_hash = context.key_hash
    state.note_listing(listing, run_time, now)
    return listing


def _warn_of_shared_ids(jobs: list[JobRef]) -> None:
    """Say which items of the list share an id, and what becomes of them."""
    shared = [ref for ref in jobs if len(ref.public_ids) > 1]
    if shared:
        first = shared[0]
        logger.warning(
            "%d items of the list share an id with others: the id %s has %d. As id is the key, one "
            "row has them all: its columns and its detail are those of the publicId that is first "
            "in the order of text, %s, and additionalFields of jobs has the others, under %s.",
            *(sum(len(ref.public_ids) for ref in shared), quoted(first.id), len(first.public_ids)),
            *(quoted(first.public_id), OTHER_POSTINGS),
        )


def _ask_for_awaited(reader: ListReader) -> None:
    """Ask for the jobs that the notification log named, but that no list has shown.

    A 404 ends the wait, and so does a day without one. In the first ten minutes a 404 proves
    nothing, because a replica may lag, so each run only reads the list. After that, the details are
    asked for before the list is read: most of these webhooks are about drafts, and their 404 is no
    reason to read a list.
    """
    now, awaited = reader.now, reader.state.awaited
    due = [JobRef("", public_id) for public_id, at in awaited.items() if now - at > REPLICA_LAG]
    for ref, why in reader.ask(due):
        if why and now - awaited[ref.public_id] <= DAY:
            continue
        if why:
            line = "No longer waiting for the job %s: a webhook named it, no list shows it, but %s."
            logger.warning(line, quoted(ref.public_id), why)
        del awaited[ref.public_id]
