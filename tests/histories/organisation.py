"""An organisation whose jobs are published, edited, renamed and unpublished at random."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.state import Organisation

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from public_jobs_sandbox.postings import Job

NEW_JOBS = make_jobs(200)


class Changing:
    """The jobs of a history, as the sandbox serves them.

    Args:
        random: Decides what changes.
        clock: Returns the time of a change.
        on_change: Called after each change with the publicIds that a webhook would name, and with
            the ids of the jobs that have or had them.
    """

    def __init__(
        self,
        random: Random,
        clock: Callable[[], float],
        on_change: Callable[[set[str], set[str]], object],
    ) -> None:
        self.organisation = Organisation("Halden Robotics", plan_includes_api=True)
        self._random = random
        self._clock = clock
        self._on_change = on_change
        self._number = 0
        self._states: list[tuple[float, frozenset[str]]] = [(clock(), frozenset())]

    @property
    def jobs(self) -> list[Job]:
        """The published jobs, in the order of the list."""
        return [posting.job for posting in self.organisation.published()]

    def published(self, start: float, end: float) -> list[frozenset[str]]:
        """The ids of the published jobs, before and after each change between two moments."""
        times = [time for time, _ in self._states]
        first, last = bisect_right(times, start) - 1, bisect_right(times, end)
        return [ids for _, ids in self._states[first:last]]

    def change(self) -> None:
        """Change something at random; one job at least stays published."""
        changes = [self.publish] * 3
        if self.jobs:
            changes += [self._edit] * 4 + [self._rename, self._swap]
        if len(self.jobs) > 1:
            changes += [self._unpublish, self._unpublish, self._steal]
        if self._unpublished():
            changes += [self._publish_again] * 2
        self._random.choice(changes)()

    def publish(self) -> None:
        """Publish a new job; now and then its ids are an older job's, in the other case."""
        self._number += 1
        job = NEW_JOBS[self._number]
        if self.jobs and self._random.random() < 0.25:
            twin = self._any()
            job = job | {name: twin[name].swapcase() for name in ("id", "publicId")}
            if job["publicId"] in self.organisation.postings:
                return
        self.organisation.publish(job)
        self._changed(job["publicId"])

    def _edit(self) -> None:
        self._number += 1
        job, field = self._any(), f"newField{self._number % 4}"
        fields = {"jobTitle": f"Title {self._number}", "location": None, field: [self._number]}
        self.organisation.edit(job["publicId"], roleOverview="Edited.", **fields)
        self._changed(job["publicId"])

    def _unpublish(self) -> None:
        self._move(self._any(), None)

    def _publish_again(self) -> None:
        public_id = self._random.choice(self._unpublished())
        self.organisation.publish(public_id)
        self._changed(public_id)

    def _rename(self) -> None:
        self._number += 1
        self._move(self._any(), f"renamed-{self._number}")

    def _steal(self) -> None:
        """Give the publicId of a job, which is unpublished, to another."""
        thief, victim = self._random.sample(self.jobs, 2)
        self._move(thief, victim["publicId"])

    def _swap(self) -> None:
        """Swap the publicIds of two jobs, or of one with itself."""
        one, other = self._any(), self._any()
        for job, public_id in ((one, other["publicId"]), (other, one["publicId"])):
            self.organisation.publish(job | {"publicId": public_id})
        self._changed(one["publicId"], other["publicId"])

    def _move(self, job: Job, public_id: str | None) -> None:
        """Take the publicId from a job, and give it another one, or none."""
        before = job["publicId"]
        self.organisation.unpublish(before)
        if public_id:
            self.organisation.publish(job | {"publicId": public_id})
        self._changed(before, public_id or before)

    def _any(self) -> Job:
        return self._random.choice(self.jobs)

    def _unpublished(self) -> list[str]:
        """The publicIds of jobs that can be published again."""
        ids = {job["id"] for job in self.jobs}
        postings = self.organisation.postings.items()
        return [key for key, it in postings if not it.is_published and it.job["id"] not in ids]

    def _changed(self, *public_ids: str) -> None:
        ids = frozenset(job["id"] for job in self.jobs)
        gone = self._states[-1][1] ^ ids
        self._states.append((self._clock(), ids))
        named = {self.organisation.postings[it].job["id"] for it in public_ids}
        self._on_change({*public_ids}, named | gone)
