"""The outcomes of a run's details, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tap_public_jobs.api.models import JobRef

# Failures in a row after which the API may be down.
MANY_FAILURES = 5


@dataclass
class Outcomes:
    """The details that were written, that were not found, and that failed.

    Attributes:
        written: How many records were written.
        not_found: Why, by job; `settle` decides what that means.
        unpublished: Jobs that were unpublished during the run.
        failed: Why, by job.
    """

    written: int = 0
    not_found: dict[JobRef, str] = field(default_factory=dict)
    unpublished: list[JobRef] = field(default_factory=list)
    failed: dict[JobRef, str] = field(default_factory=dict)
    _failures_in_a_row: int = 0

    @property
    def done(self) -> int:
        """How many requests for details have an outcome."""
        return self.written + len(self.not_found) + len(self.unpublished) + len(self.failed)

    def note_written(self) -> None:
        """Note that a record was written."""
        self.written += 1
        self._failures_in_a_row = 0

    def note_failure(self, job: JobRef, reason: str) -> bool:
        """Note that a detail failed; returns whether the API may be down."""
        self.failed[job] = reason
        self._failures_in_a_row += 1
        return self._failures_in_a_row % MANY_FAILURES == 0

    def settle(self, listed: Mapping[str, JobRef] | None) -> list[JobRef]:
        """Classify the details that were not found.

        Args:
            listed: The jobs of a list that was read after them; None if it is not complete.

        Returns:
            The jobs that are listed under another publicId, to be fetched with it.
        """
        renamed: list[JobRef] = []
        for job, reason in self.not_found.items():
            if listed is None:
                self.failed[job] = f"{reason}, and the list is not complete"
            elif (found := listed.get(job.id)) is None:
                self.unpublished.append(job)
            elif found.public_id != job.public_id:
                renamed.append(found)
            else:
                self.failed[job] = f"{reason}, although the job is listed"
        self.not_found = {}
        return renamed
