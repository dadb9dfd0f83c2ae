"""Details that were paid for, which the next run must not request again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness import Output
from histories.checks import same
from histories.warehouses import document

from tap_public_jobs.sync.state import SyncState

if TYPE_CHECKING:
    from collections.abc import Collection

    from histories.organisation import Job

Message = dict[str, Any]

HALF_AGE = 3.5 * 24 * 3600.0
"""Seconds for which no detail expires, by the default of `detail_max_age_days`."""

DAY = 24 * 3600.0


class Paid:
    """The details whose records precede the state that the next run gets."""

    def __init__(self) -> None:
        self._clocks: dict[str, float] = {}
        self._changed: set[str] = set()
        self._naming = ""

    def begin(self, state: Message | None) -> None:
        """Begin a run."""
        self._changed = set()
        if state is None:
            self._clocks = {}

    def forget(self, ids: Collection[str]) -> None:
        """Note that jobs have changed."""
        self._changed.update(ids)
        for key in ids:
            self._clocks.pop(key, None)

    def note(self, messages: list[Message], state: Message, naming: str, clock: float) -> None:
        """Note the records that a state covers, after the target has emitted it.

        Args:
            messages: Those of the run that wrote the state.
            state: The state.
            naming: How that run names columns.
            clock: When it began.
        """
        if naming != self._naming:  # the state owes all details
            self._clocks, self._naming = {}, naming
        if not Output(messages).of("SCHEMA", "job_details"):
            return
        position = max(n for n, it in enumerate(messages) if it.get("value") == state)
        for record in Output(messages[:position]).records("job_details"):
            key = document(record, "job_details", naming)["id"]
            if key not in self._changed:
                self._clocks[key] = clock

    def check(
        self, asked: list[Job], state: Message | None, refresh: str, naming: str, clock: float
    ) -> None:
        """Check that a quiet run requested no detail that was paid for.

        Args:
            asked: The jobs.
            state: What the run got.
            refresh: Its `detail_refresh`.
            naming: How it names columns.
            clock: When it began.
        """
        since = clock - HALF_AGE
        if refresh == "all":
            run = SyncState.read(state or {}).unfinished
            since = clock
            if run and run.refresh == "all" and clock - run.started_at < DAY:
                since = run.started_at - 1  # an interrupted run resumes
        if naming == self._naming:
            paid = [job.id for job in asked if self._clocks.get(job.id, 0.0) > since]
            same("details that were requested again", paid, [])
