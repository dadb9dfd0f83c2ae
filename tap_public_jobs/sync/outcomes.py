"""What became of the details that did not arrive."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tap_public_jobs.sync.source import JobRef


@dataclass
class Outcomes:
    """The details that were not found, and those that failed.

    Attributes:
        outage_since: Since when many details had been failing before the run; 0 if few had.
        not_found: Why, by job, until the list is read again.
        unpublished: Ids of jobs that were unpublished during the run.
        renamed: Ids of jobs whose publicId changed during the run. The next run fetches them.
        failed: Why, by job.
    """

    outage_since: int
    not_found: dict[JobRef, str] = field(default_factory=dict)
    unpublished: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)
    failed: dict[JobRef, str] = field(default_factory=dict)

    def classify(self, listed: Mapping[str, JobRef] | None) -> dict[JobRef, str]:
        """Decide which of the details that were not found belong to jobs that are still published.

        Args:
            listed: The jobs of a list that was read after them; None if it is not complete.

        Returns:
            Why, by job, a detail has failed.
        """
        failed: dict[JobRef, str] = {}
        for ref, reason in self.not_found.items():
            if listed is None:
                failed[ref] = f"{reason}, and the list is not complete"
            elif ref.id not in listed:
                self.unpublished.append(ref.id)
            elif listed[ref.id].public_id != ref.public_id:
                self.renamed.append(ref.id)
            else:
                failed[ref] = f"{reason}, although the job is listed"
        return failed
