"""The tap: wires the settings to the client, the state and the streams; starts and ends a run."""

import logging
import signal
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from singer_sdk import Stream
from singer_sdk.singerlib import StateMessage
from typing_extensions import override

from tap_public_jobs.api.client import AUTH_HEADERS, PublicJobsClient
from tap_public_jobs.errors import DamagedStateError, SetupError, TapError
from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.limit.transport import Session
from tap_public_jobs.limit.verdict import MAX_TRIES
from tap_public_jobs.lines import quoted
from tap_public_jobs.singer.catalog import Keys
from tap_public_jobs.singer.columns import OTHERS
from tap_public_jobs.singer.naming import fields_of, wrong_names
from tap_public_jobs.singer.settings import Settings
from tap_public_jobs.singer.tap import SingerTap
from tap_public_jobs.streams import ORDER, SCHEMAS, JobDetails, PublicJobsStream, log_left_out
from tap_public_jobs.sync.listing import first_detail
from tap_public_jobs.sync.notifications import Log
from tap_public_jobs.sync.report import Counts, Report
from tap_public_jobs.sync.run import Run
from tap_public_jobs.sync.services import Checkpoints, RunSettings, Services
from tap_public_jobs.sync.source import KEYS, hash_key, job_ref
from tap_public_jobs.sync.start import read_news, start_run
from tap_public_jobs.sync.state import DAY, SyncState
from tap_public_jobs.sync.state_json import load

logger = logging.getLogger(__name__)

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

NO_DETAIL = (
    "The list can be read, but no detail of its first jobs: {}. Test again; if the API is up, ask "
    "its provider."
)

SETTINGS = Settings("tap-public-jobs", Path(__file__).with_name("settings.json"))


class TapPublicJobs(SingerTap):
    """Singer tap for the Public Jobs API."""  # shown by --about

    name = "tap-public-jobs"
    config_jsonschema: ClassVar[dict[str, Any]] = SETTINGS.schema
    settings = SETTINGS
    keys: ClassVar[Keys] = {stream.name: {"id": {"type": "string"}} for stream in ORDER}

    # Returns seconds since the epoch; waits for a number of seconds. Tests replace both.
    clock: Callable[[], float] = staticmethod(time.time)
    sleep: Callable[[float], object] = staticmethod(time.sleep)

    @override
    def wrong_values(self) -> list[str]:
        withheld, ignored = self.config["withheld_fields"], self.config["ignored_fields"]
        columns = SCHEMAS.get_schema(JobDetails.name)["properties"].keys() - {OTHERS}
        return [
            *(f"ignored_fields: {why}" for why in wrong_names(ignored, KEYS)),
            *(f"withheld_fields: {why}" for why in wrong_names(withheld, KEYS, columns)),
        ]

    @override
    def stop_requests(self, reason: SystemExit) -> None:
        self.throttle.close(reason)

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
            withheld=fields_of(config["withheld_fields"]),
        )

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
            TapError: No stream is selected, or the notification log or the list cannot be
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
            ignored_fields=fields_of(self.config["ignored_fields"]),
        )
        return start_run(
            settings=settings,
            services=self._services,
            state=self._sync_state,
            log=self._notification_log,
            forms=forms,
        )

    # Final in the SDK, which has no hook for the start and the end of a run.
    @override  # type: ignore[misc]
    def sync_all(self) -> None:
        """Sync the selected streams, log a summary, and report what is missing.

        Raises:
            TapError: Something has been missing for less than an hour, or the run could not
                continue.
        """
        counts = Counts()  # of a run that finds no work, or cannot read the list
        self.is_syncing = True
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
                raise TapError(missing)
        except SystemExit:
            logger.info("Stopped by a signal. The next run resumes where this one ended.")
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # nothing may interrupt the last STATE
            self.throttle.close(SystemExit())  # so that threads that wait for a slot end
            self._services.report.log_summary(counts, self.client.retries)
            # However the run ended, the next one need not fetch again what this one has fetched.
            self._services.checkpoints.write(self._sync_state)

    @property
    def _notification_log(self) -> Log | None:
        if "changes_url" not in self.config:
            return None
        from tap_public_jobs.notification_log import NotificationLog  # noqa: PLC0415  # loads slowly

        return NotificationLog(self.config["changes_url"])

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

    # Final in the SDK, whose test would write SCHEMA and RECORD messages around the one line.
    @override  # type: ignore[misc]
    def run_connection_test(self) -> bool:
        """Read the notification log, the first page and a detail; log that the key works.

        Raises:
            TapError: The page, the detail, or under `notified` the notification log cannot be read.
        """
        log_left_out(self.streams)
        is_notified = self.config["detail_refresh"] == "notified"
        read_news(self._notification_log, None, is_required=is_notified)
        page = self.client.page(1)
        published = len(page.items) if page.total is None else page.total
        logger.info("%s", self._services.report.key_works(published, page.size))
        # A job whose detail fails is no reason to refuse a set-up.
        _, why = first_detail(self.client, filter(None, map(job_ref, page.items)), MAX_TRIES)
        if why:
            raise TapError(NO_DETAIL.format(why))
        return True
