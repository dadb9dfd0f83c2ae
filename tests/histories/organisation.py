"""The truth: an organisation whose jobs change at random. Shares no code with tap or sandbox."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

Document = dict[str, Any]

DETAIL_ONLY = {"roleOverview", "yearsExperience", "knockoutQuestions", "requiredSkills"}
"""Fields that the list does not show."""


@dataclass
class Job:
    """A job, whether it is published or not."""

    document: Document
    is_published: bool = False
    changes: list[tuple[float, bool]] = field(default_factory=list)
    """When it was published, and when it no longer was."""

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def public_id(self) -> str:
        return str(self.document["publicId"])

    @property
    def summary(self) -> Document:
        return {name: it for name, it in self.document.items() if name not in DETAIL_ONLY}

    def publish(self, *, is_published: bool) -> None:
        self.is_published = is_published
        self.changes.append((time.monotonic(), is_published))

    def states(self, start: float, end: float) -> set[bool]:
        """Whether it was published, and whether it was not, at some moment between the two."""
        before = [False, *(state for at, state in self.changes if at < start)]
        return {before[-1], *(state for at, state in self.changes if start <= at <= end)}


class Organisation:
    """The jobs, by id. Any thread may call any method.

    Args:
        random: Decides what changes.
        on_change: Called after each change with the publicIds and the ids of its jobs.
        shows_edits: Whether each edit changes the summary too, so that the list shows it.
    """

    def __init__(
        self,
        random: Random,
        on_change: Callable[[set[str], set[str]], object],
        *,
        shows_edits: bool,
    ) -> None:
        self.jobs: dict[str, Job] = {}
        self.lock = threading.RLock()
        self._random = random
        self._on_change = on_change
        self._shows_edits = shows_edits
        self._number = 0

    @property
    def published(self) -> list[Job]:
        with self.lock:
            return [job for job in self.jobs.values() if job.is_published]

    def change(self) -> None:
        """Change something at random."""
        with self.lock:
            changes = [self.publish] * 3 + [self.edit] * 4
            if self._other():
                changes += [self.unpublish, self.unpublish, self.rename, self.steal, self.swap]
            if any(not job.is_published for job in self.jobs.values()):
                changes += [self.publish_again] * 2
            self._random.choice(changes)()

    def publish(self) -> None:
        """Publish a new job; now and then its ids are an older job's, in the other case."""
        number = self._next()
        job_id, public_id = f"job-{number}", f"analyst-{number}"
        if (twin := self._other()) and self._random.random() < 0.25:
            job_id, public_id = twin.id.swapcase(), twin.public_id.swapcase()
        if job_id in self.jobs or self._owner(public_id):
            return
        document: Document = {
            "id": job_id,
            "publicId": public_id,
            "jobTitle": f"Analyst {number}",
            "location": "Oslo" if number % 2 else None,
            "minSalary": 50_000 + number / 2,
            "maxSalary": "negotiable" if number % 7 == 0 else 90_000,
            "roleOverview": f"Overview {number}",
            "yearsExperience": number % 9,
            "knockoutQuestions": [{"id": f"q-{number}", "required": True}] * (number % 3),
            "requiredSkills": ["SQL", f"skill {number}"],
        }
        self.jobs[job_id] = Job(document)
        self._set(self.jobs[job_id], is_published=True)

    def unpublish(self) -> None:
        """Unpublish a job, or one time in ten all of them."""
        jobs = self.published
        for job in jobs if self._random.random() < 0.1 else [self._random.choice(jobs)]:
            self._set(job, is_published=False)

    def publish_again(self) -> None:
        """Publish a job that was unpublished, unless another has taken its publicId."""
        job = self._random.choice([job for job in self.jobs.values() if not job.is_published])
        if not self._owner(job.public_id):
            self._set(job, is_published=True)

    def edit(self) -> None:
        """Change, add or remove fields of any job."""
        if not self.jobs:
            return
        job, number = self._random.choice([*self.jobs.values()]), self._next()
        name, value = self._random.choice(
            [
                ("jobTitle", f"Title {number}"),
                ("minSalary", number),
                ("location", None),
                (f"newField{number % 4}", {"since": number}),
                ("roleOverview", f"Overview {number}"),
                ("requiredSkills", [number]),
                ("knockoutQuestions", None),
            ]
        )
        job.document = {**job.document, name: value}
        if self._shows_edits:
            job.document["department"] = f"Department {number}"
        self._changed(job)

    def rename(self) -> None:
        """Give a job another publicId."""
        self._identify(self._random.choice(self.published), f"renamed-{self._next()}")

    def steal(self) -> None:
        """Give the publicId of a job to another, which takes its place or leaves it a new one."""
        thief, victim = self._random.choice(self.published), self._random.choice(self.published)
        if thief is victim:
            return
        public_id = victim.public_id
        if self._random.random() < 0.5:
            self._set(victim, is_published=False)
        else:
            self._identify(victim, f"robbed-{self._next()}")
        self._identify(thief, public_id)

    def swap(self) -> None:
        """Swap the publicIds of two jobs."""
        one, other = self._random.choice(self.published), self._random.choice(self.published)
        first, second = one.public_id, other.public_id
        self._identify(one, f"between-{self._next()}")
        self._identify(other, first)
        self._identify(one, second)

    def _other(self) -> Job | None:
        return self._random.choice(self.published) if self.published else None

    def _owner(self, public_id: str) -> Job | None:
        return next((job for job in self.published if job.public_id == public_id), None)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _set(self, job: Job, *, is_published: bool) -> None:
        job.publish(is_published=is_published)
        self._changed(job)

    def _identify(self, job: Job, public_id: str) -> None:
        before = job.public_id
        job.document = {**job.document, "publicId": public_id}
        self._changed(job, before)

    def _changed(self, job: Job, *public_ids: str) -> None:
        self._on_change({job.public_id, *public_ids}, {job.id})
