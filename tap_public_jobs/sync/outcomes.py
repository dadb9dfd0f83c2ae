"""What became of the details that did not arrive."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tap_public_jobs.api.models import JobRef


@dataclass
class Outcomes:
    """The details that were not found, and those that failed.

    Attributes:
        not_found: The 404s until the list is read again; why, by job.
        unpublished: Ids of jobs that were unpublished during the run.
        failed: Why, by job.
    """

    not_found: dict[JobRef, str] = field(default_factory=dict)
    unpublished: list[str] = field(default_factory=list)
    failed: dict[JobRef, str] = field(default_factory=dict)

    def classify(self, listed: Mapping[str, JobRef] | None) -> list[JobRef]:
        """Decide which of the details that were not found are of unpublished jobs.

        Args:
            listed: The jobs of a list that was read after them; None if it is not complete.

        Returns:
            The jobs that are listed under another publicId now, to be fetched with it.
        """
        renamed: list[JobRef] = []
        for ref, reason in self.not_found.items():
            now_listed = listed.get(ref.id) if listed is not None else None
            if listed is None:
                self.failed[ref] = f"{reason}, and the list is not complete"
            elif now_listed is None:
                self.unpublished.append(ref.id)
            elif now_listed.public_id != ref.public_id:
                renamed.append(now_listed)
            else:
                self.failed[ref] = f"{reason}, although the job is listed"
        self.not_found = {}
        return renamed
