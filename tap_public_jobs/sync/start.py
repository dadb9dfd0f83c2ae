"""The start of a run: is there work, what does the list show, which details are to be fetched?"""

import logging
from collections.abc import Mapping

from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import quoted
from tap_public_jobs.sync.listing import ListReader
from tap_public_jobs.sync.notifications import Notifications
from tap_public_jobs.sync.outcomes import Outcomes
from tap_public_jobs.sync.plan import plan_details
from tap_public_jobs.sync.report import Counts
from tap_public_jobs.sync.run import Run
from tap_public_jobs.sync.services import RunSettings, Services
from tap_public_jobs.sync.source import OTHER_POSTINGS, JobRef
from tap_public_jobs.sync.state import DAY, Listing, SyncState
from tap_public_jobs.sync.work import has_work, is_covered, next_cycle

logger = logging.getLogger(__name__)

NO_NEWS = "The notification log has no news since the last run: nothing to fetch."

NOT_COVERED = (
    "The notification log does not cover everything since the last run; running as detail_refresh: "
    "changed."
)

OTHER_ORGANISATION = (
    "api_key has changed, and the API lists none of the {:,} jobs that were synced before, so the "
    "key seems to belong to another organisation. Set api_key back, or give each organisation its "
    "own state and schema. To replace the contents of the tables, which begins their history anew, "
    "run once with meltano run --full-refresh."
)


def start_run(
    *,
    settings: RunSettings,
    services: Services,
    state: SyncState,
    notifications: Notifications | None,
    forms: Mapping[str, str],
) -> Run | None:
    """Decide whether there is work, and if so, read the list.

    Args:
        settings: What the user has decided.
        services: What the run uses.
        state: What earlier runs know; this run adds to it.
        notifications: What the notification log says, read before the list, so that the list and
            the details show everything notified until then.
        forms: Per stream that the run writes, what its records are made of.

    Returns:
        None if there is no work.

    Raises:
        PublicJobsError: The list cannot be read, or it seems to be of another organisation.
    """
    now = int(services.clock())
    state.update_evidence(now)
    reader = ListReader(
        api=services.api,
        state=state,
        now=now,
        workers=settings.workers,
        ignored_fields=settings.ignored_fields,
        report=services.report,
        sleep=services.sleep,
    )
    # Is there work? Until the list is read, the state is that of the last run.
    is_notified = settings.refresh == "notified"
    if is_notified and not has_work(state, notifications, now, forms):
        logger.info(NO_NEWS)
        return None
    # Which run is it?
    run_time = max(now, state.run_time + 1)
    cycle = next_cycle(state, "all" if settings.refresh == "all" else "changed", run_time, now)
    if is_notified and state.listed_at is not None and not is_covered(state, notifications):
        logger.info(NOT_COVERED)
    old_form = state.forms.get("job_details")
    if old_form and forms.get("job_details", old_form) != old_form:
        logger.info("The selected columns changed; fetching all details again.")
    if cycle.started_at < run_time:
        logger.info("Resuming the last run: fetching only the details that it did not fetch.")
    _warn_of_a_clock_that_was_ahead(run_time - now)
    # What does the API show?
    listing = _read_list(reader, is_new_key=state.key_hash not in {"", settings.key_hash})
    _warn_of_shared_ids([*listing.jobs.values()])
    # From here on, the state is that of this run.
    opened = state.note_listing(
        listing, notifications=notifications, forms=forms, run_time=run_time, now=now
    )
    state.key_hash = settings.key_hash
    if state.jobs or state.cycle:  # else no list has ever shown a job
        state.cycle = cycle
    # What is to be fetched?
    plan = plan_details(state, listing, cycle, settings.max_age)
    return Run(
        settings=settings,
        services=services,
        state=state,
        now=now,
        listing=listing,
        plan=plan,
        outcomes=Outcomes(state.outage_since(now)),
        counts=Counts(opened=opened, closed=len(listing.gone)),
    )


def _warn_of_a_clock_that_was_ahead(seconds: int) -> None:
    if seconds > DAY:
        logger.warning(
            "The clock was %d days ahead in an earlier run. Until it gets there, runs are dated a "
            "second apart, and details do not expire.",
            seconds // DAY,
        )


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


def _read_list(reader: ListReader, *, is_new_key: bool) -> Listing:
    """Read the list, and find out what became of the known jobs that it lacks.

    Raises:
        PublicJobsError: It cannot be read, or it seems to be of another organisation.
    """
    reading = reader.read()
    known = reader.state.jobs
    if is_new_key and known and known.keys().isdisjoint(reading.jobs):
        raise SetupError(OTHER_ORGANISATION.format(len(known)))
    return reader.resolve_unlisted(reading)
