"""The tap: wires the settings to the client, the state and the streams; starts and ends a run."""

import logging
import signal
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from types import FrameType
from typing import Any, ClassVar

from singer_sdk import Stream, Tap
from singer_sdk.singerlib import StateMessage
from typing_extensions import override

from tap_public_jobs.api.client import AUTH_HEADERS, PublicJobsClient
from tap_public_jobs.errors import (
    DamagedStateError,
    NotificationLogError,
    PublicJobsError,
    SetupError,
)
from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.limit.transport import Session
from tap_public_jobs.lines import described, hide, quoted
from tap_public_jobs.singer import settings
from tap_public_jobs.singer.naming import field_of
from tap_public_jobs.singer.process import SECONDS_TO_ANSWER, WholeMessageWriter, exit_soon
from tap_public_jobs.streams import (
    JobDetails,
    JobPublications,
    Jobs,
    PublicJobsStream,
    log_left_out,
)
from tap_public_jobs.sync.notifications import Notifications
from tap_public_jobs.sync.report import Counts, Report
from tap_public_jobs.sync.run import Run
from tap_public_jobs.sync.services import Checkpoints, RunSettings, Services
from tap_public_jobs.sync.source import hash_key, job_ref
from tap_public_jobs.sync.start import start_run
from tap_public_jobs.sync.state import DAY, SyncState
from tap_public_jobs.sync.state_json import load
from tap_public_jobs.sync.work import continues

logger = logging.getLogger(__name__)

NEWS_LOST = (
    "The notification log was full and dropped %d notifications that no run has read. This run "
    "finds new, closed and renamed jobs in the list; a change that only a detail shows is found "
    "within detail_max_age_days. Run the tap more often."
)

NOTHING_SELECTED = (
    "No stream is selected: select jobs, job_publications or job_details in the catalog, or under "
    "`select` in meltano.yml."
)

NOT_A_STATE = (
    '--state has no "bookmarks": pass the object in the `value` of the last STATE line of the tap, '
    "not the whole line."
)

OTHER_STATE = (
    "--state is that of another tap ({}): pass the state of the last run of this one, or none to "
    "begin anew. Under Meltano, give each its own name or --state-id-suffix."
)

NO_STATE = (
    "First run (no state). If there was an earlier one, pass its state, or list `state` under the "
    "plugin's `capabilities` in meltano.yml."
)

# The order in which streams are synced: the fast ones come before the long fan-out.
ORDER = (Jobs, JobPublications, JobDetails)


class TapPublicJobs(Tap):
    """Singer tap for the Public Jobs API."""  # shown by --about

    name = "tap-public-jobs"
    config_jsonschema: ClassVar[dict[str, Any]] = settings.CONFIG_JSONSCHEMA
    # Files carry no version, so a target could not remove rows after BATCH. No field of the API
    # could be compared with a start date, a setting of every tap from singer-sdk 0.55 on.
    capabilities: ClassVar[list[Any]] = [
        each for each in Tap.capabilities if each.value not in {"batch", "start-date"}
    ]
    message_writer_class = WholeMessageWriter
    message_writer: WholeMessageWriter

    # Whether a run is under way, so that a signal waits for the responses to what has been sent.
    _is_syncing = False

    # Returns seconds since the epoch; waits for a number of seconds. Tests replace both.
    clock: Callable[[], float] = staticmethod(time.time)
    sleep: Callable[[float], object] = staticmethod(time.sleep)

    @cached_property
    def throttle(self) -> Throttle:
        """The rate limit of the key, of which the last run may have used a part."""
        config = self.config
        held = self._sync_state.held_slots if self._is_key_of_state else None
        limit, period = config["rate_limit_requests"], config["rate_limit_period_seconds"]
        return Throttle(limit, period, held=held, epoch=self.clock)

    @property
    def _is_key_of_state(self) -> bool:
        return self._sync_state.key_hash == hash_key(self.config["api_key"])

    @cached_property
    def client(self) -> PublicJobsClient:
        """The API, through one session and one throttle."""
        config = self.config
        headers = {
            "User-Agent": config.get("user_agent") or f"{self.name}/{self.plugin_version}",
            config["auth_header"]: AUTH_HEADERS[config["auth_header"]].format(config["api_key"]),
        }
        session = Session(
            throttle=self.throttle,
            connections=config["max_concurrent_requests"],
            headers=headers,
            base_url=config["base_url"],
            timeout=config["request_timeout_seconds"],
        )
        session.key_has_worked = self._is_key_of_state
        return PublicJobsClient(
            session,
            config["base_url"],
            page_size=config["page_size"],
            withheld=_fields([settings.OTHERS.sub("", it) for it in config["withheld_fields"]]),
        )

    @override
    def setup_mapper(self) -> None:
        try:
            super().setup_mapper()
        except Exception as error:  # whatever the SDK raises over a mistake
            msg = f"stream_maps or flattening cannot be applied: {described(error)}."
            raise SetupError(msg) from error

    @override
    def discover_streams(self) -> Sequence[Stream]:
        return [stream(self, self.shared_run) for stream in ORDER]

    @property
    @override
    def streams(self) -> dict[str, PublicJobsStream]:  # type: ignore[override]
        # The SDK sorts them by name, and selects those that the catalog leaves out.
        streams: dict[str, Any] = {**super().streams}
        catalog = streams if self.input_catalog is None else self.input_catalog
        return {stream.name: streams[stream.name] for stream in ORDER if stream.name in catalog}

    @cached_property
    def _services(self) -> Services:
        # The SDK's `state_writer` would copy the state each time, to skip one without a change.
        checkpoints = Checkpoints(
            self.state,
            self.throttle.held_slots,
            lambda: self.write_message(StateMessage(value=self.state)),
        )
        return Services(
            api=self.client,
            report=Report(self.throttle),
            checkpoints=checkpoints,
            clock=self.clock,
            sleep=self.sleep,
        )

    def shared_run(self) -> Run | None:
        """Return the run, which starts when it is first asked for; None if there is no work.

        Raises:
            PublicJobsError: No stream is selected, or the notification log or the list cannot be
                read.
        """
        return self._run

    @cached_property
    def _run(self) -> Run | None:
        forms = {it.name: it.form for it in self.streams.values() if it.writes_records}
        if not forms:
            raise SetupError(NOTHING_SELECTED)
        log_left_out(self.streams)
        if not self._has_state:
            logger.info(NO_STATE)
        self._services.report.waiting(1)
        settings = RunSettings(
            refresh=self.config["detail_refresh"],
            max_age=self.config["detail_max_age_days"] * DAY,
            workers=self.config["max_concurrent_requests"],
            key_hash=hash_key(self.config["api_key"]),
            ignored_fields=_fields(self.config["ignored_fields"]),
        )
        return start_run(
            settings=settings,
            services=self._services,
            state=self._sync_state,
            notifications=self._read_notification_log(),
            forms=forms,
        )

    # Final in the SDK, which has no hook for the start and the end of a run.
    @override  # type: ignore[misc]
    def sync_all(self) -> None:
        """Sync the selected streams, log a summary, and report what is missing.

        Raises:
            PublicJobsError: Something has been missing for less than an hour, or the run could not
                continue.
        """
        counts = Counts()  # of a run that finds no work, or cannot read the list
        self._is_syncing = True
        try:
            # The run reads the list before the first SCHEMA message, on which some targets empty a
            # table.
            if run := self.shared_run():
                counts = run.counts
                # The first STATE message says that a run has begun, so that the next one has work
                # if this one is killed after its first record.
                self._services.checkpoints.keep(self._sync_state)
                super().sync_all()
            if self.throttle.reason:  # a signal came after the last request
                raise self.throttle.reason
            if run and (missing := run.finish()):
                raise PublicJobsError(missing)
        except SystemExit:
            logger.info("Stopped by a signal. The next run resumes where this one ended.")
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # nothing may interrupt the last STATE
            self.throttle.close(SystemExit())  # so that threads that wait for a slot end
            self._services.report.log_summary(counts, self.client.retries)
            # However the run ended, the next one need not fetch again what this one has fetched.
            self._services.checkpoints.write(self._sync_state)

    def _read_notification_log(self) -> Notifications | None:
        """Read what was notified since the last run; None if there is no log to read."""
        if "changes_url" not in self.config:
            return None
        from tap_public_jobs.notification_log import NotificationLog  # noqa: PLC0415  # loads slowly

        log, last_read = NotificationLog(self.config["changes_url"]), self._sync_state.last_read
        try:
            notifications = log.read(last_read.position if last_read else 0)
            # Positions mean nothing in another log, or in an earlier copy of this one.
            if last_read and not continues(notifications, last_read):
                notifications = log.read()
            elif last_read and (lost := notifications.forgotten - last_read.position) > 0:
                logger.warning(NEWS_LOST, lost)
        except NotificationLogError as error:
            if self.config["detail_refresh"] == "notified":
                raise
            logger.warning("%s Continuing without it.", error)
            return None
        return notifications

    @override
    def load_state(self, state: dict[str, Any]) -> None:
        if state and "bookmarks" not in state:
            raise SetupError(NOT_A_STATE)
        bookmarks = state.get("bookmarks")
        # Another tap may have a stream called `jobs`, too. This one keeps its state below `sync`
        # there, and nothing elsewhere.
        others = [
            f"its stream {quoted(name)} has {', '.join(map(quoted, bookmark))}"
            for name, bookmark in (bookmarks.items() if isinstance(bookmarks, dict) else ())
            if isinstance(bookmark, dict)
            and bookmark
            and not (name == "jobs" and "sync" in bookmark)
        ]
        if others:
            raise SetupError(OTHER_STATE.format("; ".join(others[:3])))
        self._has_state = bool(state)
        try:
            self._sync_state = load(state)
        except DamagedStateError as error:
            logger.warning(
                "The saved state is damaged, or of another version of the tap (%s). All details "
                "are fetched again, and job_publications begins a new history. To keep the old "
                "one, stop this run and restore the state.",
                error,
            )
            self._sync_state = SyncState()

    @property
    @override
    # Private: the SDK looks for `.env` above the installed package, and reads "ture" as false.
    def _env_var_config(self) -> dict[str, Any]:
        return settings.from_environment()

    @override
    def _validate_config(self, *, raise_errors: bool = True) -> list[str]:
        # Private: the SDK's messages quote the key, and its defaults do not replace null.
        settings.warn_of_unused_variables(self._config)
        self._config = settings.with_defaults(self._config)
        hide(settings.secrets(self._config))
        errors = settings.problems(self._config)
        if errors and raise_errors:
            raise SetupError(" ".join(errors))
        return errors

    # Final in the SDK, whose test would write SCHEMA and RECORD messages around the one line.
    @override  # type: ignore[misc]
    def run_connection_test(self) -> bool:
        """Read the notification log, the first page and one detail; log that the key works.

        Raises:
            PublicJobsError: The page cannot be read, or under `notified` the notification log.
            RequestError: The detail cannot be read.
        """
        log_left_out(self.streams)
        self._read_notification_log()
        page = self.client.page(1)
        published = len(page.items) if page.total is None else page.total
        logger.info("%s", self._services.report.key_works(published, page.size))
        for job in filter(None, map(job_ref, page.items[:1])):
            self.client.detail(job)
        return True

    @override
    def _handle_termination(self, signum: int, frame: FrameType | None) -> None:
        # Private: the SDK exits with status 0, which a scheduler takes for success.
        signal.signal(signum, signal.SIG_IGN)
        status = 128 + signum
        exit_soon(status)
        if not self._is_syncing:
            self.message_writer.stop(status)
        # What has been sent may still be answered.
        self.throttle.close(SystemExit(status))
        signal.signal(signal.SIGALRM, lambda *_: self.message_writer.stop(status))
        signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_ANSWER)


def _fields(names: list[str]) -> frozenset[str]:
    """Return names of fields, and for those of columns the API's, too."""
    return frozenset(names) | frozenset(map(field_of, names))
