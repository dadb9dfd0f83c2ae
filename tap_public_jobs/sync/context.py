"""What a run is given: its settings, the API, the clock, the report, and a place for its state."""

from collections.abc import Callable
from dataclasses import dataclass

from tap_public_jobs.api.client import PublicJobsClient
from tap_public_jobs.api.models import HeldSlots, Json
from tap_public_jobs.report import Report
from tap_public_jobs.sync.state import SyncState
from tap_public_jobs.sync.stored import dump


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """What a run is given.

    Attributes:
        refresh: Which details to fetch again: the setting `detail_refresh`.
        max_age: Seconds; the setting `detail_max_age_days`.
        workers: Requests at once.
        key_hash: Hash of the API key.
        api: Answers requests.
        report: Counts and logs what happens.
        clock: Returns seconds since the epoch.
        sleep: Waits for a number of seconds.
        held_slots: Returns what the run has used of the rate limit.
        singer_state: Where the run keeps its state.
        write_state: Writes a STATE message of it.
        ignored_fields: The setting, with the API's names.
    """

    refresh: str
    max_age: float
    workers: int
    key_hash: str
    api: PublicJobsClient
    report: Report
    clock: Callable[[], float]
    sleep: Callable[[float], object]
    held_slots: Callable[[], HeldSlots | None]
    singer_state: Json
    write_state: Callable[[], object]
    ignored_fields: frozenset[str] = frozenset()

    def keep(self, state: SyncState) -> None:
        """Put what the next run needs into Singer state, unless nothing is known."""
        if state.key_hash:  # else no list was ever read, and the next run is a first one again
            state.held_slots = self.held_slots()
            dump(state, self.singer_state)

    def checkpoint(self, state: SyncState) -> None:
        """Write a STATE message of what is known so far."""
        self.keep(state)
        self.write_state()
