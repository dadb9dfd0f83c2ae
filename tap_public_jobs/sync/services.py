"""What a run is given: settings, and services that it uses."""

from collections.abc import Callable
from dataclasses import dataclass

from tap_public_jobs.limit.throttle import HeldSlots
from tap_public_jobs.sync.report import Report
from tap_public_jobs.sync.source import Json, Source
from tap_public_jobs.sync.state import SyncState
from tap_public_jobs.sync.state_json import dump


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a user has decided.

    Attributes:
        refresh: Which details to fetch again: the setting `detail_refresh`.
        max_age: Seconds; the setting `detail_max_age_days`.
        workers: Requests at once.
        key_hash: Hash of the API key.
        ignored_fields: The setting, with the API's names.
    """

    refresh: str
    max_age: float
    workers: int
    key_hash: str
    ignored_fields: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Checkpoints:
    """Where a run keeps its state.

    Attributes:
        singer_state: The SDK's, of which it is a part.
        held_slots: Returns what the run has used of the rate limit.
        write_message: Writes a STATE message of the SDK's state.
    """

    singer_state: Json
    held_slots: Callable[[], HeldSlots | None]
    write_message: Callable[[], object]

    def keep(self, state: SyncState) -> None:
        """Put what the next run needs into Singer state, unless nothing is known."""
        if state.key_hash:  # else no list was ever read, and the next run is a first one again
            state.held_slots = self.held_slots()
            dump(state, self.singer_state)

    def write(self, state: SyncState) -> None:
        """Write a STATE message of what is known so far."""
        self.keep(state)
        self.write_message()


@dataclass(frozen=True, kw_only=True)
class Services:
    """What a run uses.

    Attributes:
        api: Answers requests.
        report: Logs what happens.
        checkpoints: Keep the state.
        clock: Returns seconds since the epoch.
        sleep: Waits for a number of seconds.
    """

    api: Source
    report: Report
    checkpoints: Checkpoints
    clock: Callable[[], float]
    sleep: Callable[[float], object]
