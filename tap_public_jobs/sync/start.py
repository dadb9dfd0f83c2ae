"""The start of a run: is there work, what does the list show, which details are to be fetched?"""

import logging
from collections.abc import Mapping

from tap_public_jobs.errors import NotificationLogError, SetupError
from tap_public_jobs.lines import quoted
from tap_public_jobs.sync.listing import ListReader
from tap_public_jobs.sync.notes import (
    Listing,
    correct_evidence,
    note_listing,
    note_notifications,
)
from tap_public_jobs.sync.notifications import Log, Notifications
from tap_public_jobs.sync.plan import next_cycle, plan_details
from tap_public_jobs.sync.report import Counts
from tap_public_jobs.sync.run import Run
from tap_public_jobs.sync.services import RunSettings, Services
from tap_public_jobs.sync.state import LastRead, SyncState
from tap_public_jobs.sync.work import continues, has_work, is_covered

logger = logging.getLogger(__name__)

NO_NEWS = "The notification log has no news since the last run: nothing to fetch."

NOT_COVERED = (
    "The notification log does not cover everything since the last run; running as detail_refresh: "
    "changed."
)

SHARED_IDS = (
    "%d items of the list are left out, such as %s, because they share the id of another one: of "
    "these, the one whose publicId comes first in the order of text is loaded."
)

NEWS_LOST = (
    "The notification log was full and dropped %d notifications that no run has read. This run "
    "finds new, closed and renamed jobs in the list; a change that only a detail shows is found "
    "within detail_max_age_days. Run the tap more often."
)

OTHER_ORGANISATION = (
    "api_key has changed, and the API lists none of the {:,} jobs that were synced before, so the "
    "key seems to belong to another organisation. Set api_key back, or give each organisation its "
    "own state and schema. If it is the same organisation, and all its ids are new, set "
    '"key" in the state to "": runs then go on, and the history of the tables stays.'
)


def start_run(
    *,
    settings: RunSettings,
    services: Services,
    state: SyncState,
    log: Log | None,
    forms: Mapping[str, str],
) -> Run | None:
    """Decide whether there is work, and if so, read the list.

    Args:
        settings: What the user has decided.
        services: What the run uses.
        state: What earlier runs know; this run adds to it.
        log: The notification log, if there is one. It is read before the list, so that the list and
            the details show everything notified until then.
        forms: Per stream that the run writes, what its records are made of.

    Returns:
        None if there is no work.

    Raises:
        TapError: The list, or under `notified` the log, cannot be read, or the list seems to
            be of another organisation.
    """
    now = int(services.clock())
    correct_evidence(state, now)
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
    notifications = read_news(log, state.last_read, is_required=is_notified)
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
    # What does the API show?
    listing = _read_list(reader, is_new_key=state.key_hash not in {"", settings.key_hash})
    # From here on, the state is that of this run.
    if notifications:
        note_notifications(state, notifications, now)
    opened = note_listing(state, listing, forms=forms, run_time=run_time, now=now)
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
        outage_since=state.outage_since(now),
        counts=Counts(opened=opened, closed=len(listing.gone)),
    )


def read_news(
    log: Log | None, last_read: LastRead | None, *, is_required: bool
) -> Notifications | None:
    """Read what was notified since the last run; None if there is no log to read.

    Args:
        log: The notification log, if there is one.
        last_read: How far the last run has read it.
        is_required: Whether the run cannot do without it.

    Raises:
        NotificationLogError: It cannot be read, and is required.
    """
    if log is None:
        return None
    try:
        notifications = log.read(last_read.position if last_read else 0)
        # Positions mean nothing in another log, or in an earlier copy of this one.
        if last_read and not continues(notifications, last_read):
            return log.read()
    except NotificationLogError as error:
        if is_required:
            raise
        logger.warning("%s Continuing without it.", error)
        return None
    if last_read and (lost := notifications.forgotten - last_read.position) > 0:
        logger.warning(NEWS_LOST, lost)
    return notifications


def _read_list(reader: ListReader, *, is_new_key: bool) -> Listing:
    """Read the list, and find out what became of the known jobs that it lacks.

    Raises:
        TapError: It cannot be read, or it seems to be of another organisation.
    """
    reading = reader.read()
    if reading.further:
        names = ", ".join(map(quoted, reading.further[:3]))
        logger.warning(SHARED_IDS, len(reading.further), names)
    known = reader.state.jobs
    if is_new_key and known and known.keys().isdisjoint(reading.jobs):
        raise SetupError(OTHER_ORGANISATION.format(len(known)))
    return reader.resolve_unlisted(reading)
