"""The start of a run: is there work, what does the list show, which details are to be fetched?"""

import logging
from collections.abc import Iterable, Mapping

from tap_public_jobs.api.models import OTHER_POSTINGS, JobRef
from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import quoted
from tap_public_jobs.notifications import Notifications
from tap_public_jobs.report import Counts
from tap_public_jobs.sync.listing import ListReader
from tap_public_jobs.sync.outcomes import Outcomes
from tap_public_jobs.sync.plan import plan_details
from tap_public_jobs.sync.run import Run
from tap_public_jobs.sync.services import RunSettings, Services
from tap_public_jobs.sync.state import DAY, GONE, REPLICA_LAG, Listing, SyncState, Verdict
from tap_public_jobs.sync.work import has_due_work, is_covered, looked_for, next_cycle

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
    is_due = not is_notified or has_due_work(state, notifications, now, forms)
    to_find = looked_for(state, now)
    # For another organisation's key, all would be 404.
    if (is_due or to_find) and state.key_hash == settings.key_hash:
        state.awaited = _still_awaited(state.awaited, reader.ask(_settled(state.awaited, now)), now)
    if not is_due and to_find.isdisjoint(state.awaited):
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


def _settled(awaited: Mapping[str, int], now: int) -> list[JobRef]:
    """Return the awaited jobs whose 404 means something, because no replica lags any more."""
    return [JobRef("", public_id) for public_id, at in awaited.items() if now - at > REPLICA_LAG]


def _still_awaited(
    awaited: Mapping[str, int], answers: Iterable[tuple[JobRef, Verdict]], now: int
) -> dict[str, int]:
    """Return the jobs that are still awaited after their details have answered.

    A 404 ends the wait, and so does a day without one. In the first ten minutes a 404 proves
    nothing, because a replica may lag, so each run only reads the list. After that, the details are
    asked for before the list is read: most of these webhooks are about drafts, and their 404 is no
    reason to read a list.

    Args:
        awaited: When the notification log last named each publicId.
        answers: Of the details that were asked for.
        now: The clock's time.
    """
    still = {**awaited}
    for ref, verdict in answers:
        is_overdue = now - awaited[ref.public_id] > DAY
        if verdict == GONE or is_overdue:
            del still[ref.public_id]
        if verdict != GONE and is_overdue:
            why = verdict.reason or "its detail still loads"
            line = "No longer waiting for the job %s: a webhook named it, no list shows it, but %s."
            logger.warning(line, quoted(ref.public_id), why)
    return still


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
