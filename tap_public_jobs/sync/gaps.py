"""What a run could not see or load, and since when: a gap is new for an hour, and known after it.

One look proves nothing: caches, replicas and restarts pass within minutes.
So a new gap fails the run and nothing is deleted on its word; a known one is a fact to work with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

# Seconds.
HOUR = 3_600
WEEK = 7 * 24 * HOUR

# Known jobs that may be absent from the list at once, although it is right about all others.
MOST_ABSENT = 20

# Beyond these, all known jobs do not disappear at once.
FEW_JOBS = 5

Kind = Literal["list", "total", "missing", "detail"]

Key = tuple[Kind, str]


class Gap(NamedTuple):
    """Something that a run could not see or load. Times are seconds since the epoch.

    Attributes:
        kind: `detail`: a listed job whose detail failed.
            `missing`: a known job that is not listed, and that was asked for and is not gone.
            `total`: the list falls short of its `total`, or has none, or has items without a key.
            `list`: the list lacks so many known jobs that it is doubtful.
        job_id: Empty for `total` and `list`, of which there is one each.
        first_met: When a run met it first.
        last_met: When a run met it last.
        size: Of `total` and `list`: jobs, when it was met first.
        since: Since when each run met it; 0 if the last one did not.
    """

    kind: Kind
    job_id: str
    first_met: int
    last_met: int
    size: int = 0
    since: int = 0


@dataclass
class Gaps:
    """The gaps of earlier runs and of this one.

    Attributes:
        kept: All of them, by kind and job, as the state keeps them.
        clock: Returns seconds since the epoch.
        now: When this run began, which decides what is new.
        met: Those that this run met, each with a sentence for the log.
    """

    kept: dict[Key, Gap]
    clock: Callable[[], float]
    now: float = field(init=False)
    met: dict[Key, tuple[Gap, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Forget what was not met for a week, and correct the times of a wrong clock."""
        self.now = self.clock()
        now = int(self.now)
        for key, gap in [*self.kept.items()]:
            times = {it: min(getattr(gap, it), now) for it in ("first_met", "last_met", "since")}
            self.kept[key] = gap._replace(**times)
            if not gap.job_id and now - times["last_met"] > WEEK:
                del self.kept[key]

    def of_jobs(self, kind: Kind) -> dict[str, Gap]:
        """Return the gaps of this kind, by the id of the job."""
        return {gap.job_id: gap for gap in self.kept.values() if gap.kind == kind}

    def is_known(self, kind: Kind, size: int = 0) -> bool:
        """Whether the total or the list fell short more than an hour ago, by half as much."""
        gap = self.kept.get((kind, ""))
        return gap is not None and not self._is_new(gap) and size <= 2 * gap.size

    def is_just_met(self, kind: Kind) -> bool:
        """Whether runs of the last hour met a total or a list that fell short."""
        gap = self.kept.get((kind, ""))
        return gap is not None and gap.since > 0 and self.now - gap.since < HOUR

    def meet(self, key: Key, why: str, size: int = 0, within: Key | None = None) -> None:
        """Note that this run met a gap.

        Args:
            key: The kind of the gap, and the id of the job; empty for `total` and `list`.
            why: A sentence for the log.
            size: Of `total` and `list`, in jobs; one that has more than doubled is another gap.
            within: The gap that this one is a part of, and as old as.
        """
        at, gap = int(self.clock()), self.kept.get(key)
        if gap is None or size > 2 * gap.size:
            whole = self.kept.get(within) if within else None
            gap = Gap(*key, whole.first_met if whole else at, at, size)
        gap = gap._replace(last_met=at, since=gap.since or at)
        self.kept[key] = gap
        self.met[key] = gap, why

    def end(self, kind: Kind, job_ids: Iterable[str] = ("",)) -> None:
        """Forget gaps: what was missing is there, or gone for certain."""
        for job_id in job_ids:
            self.kept.pop((kind, job_id), None)

    def is_doubt(self, kind: Kind) -> bool:
        """Whether this run met a total or a list that has not fallen short for a whole hour.

        One that was right in between is known, but is doubted again for an hour.
        """
        return (kind, "") in self.met and self.is_just_met(kind)

    def heal(self) -> None:
        """Note that a total or a list that this run did not meet is right again."""
        for key, gap in self.kept.items():
            if not gap.job_id and key not in self.met:
                self.kept[key] = gap._replace(since=0)

    def _is_new(self, gap: Gap) -> bool:
        return self.now - gap.first_met < HOUR

    def open_until(self) -> int:
        """Return when the last of the new gaps will be known; 0 without any."""
        times = [gap.first_met for gap, _ in self.met.values() if self._is_new(gap)]
        return max(times) + HOUR if times else 0

    def sentences(self) -> tuple[list[str], list[str]]:
        """Return the new gaps that this run met, and the known ones with their age."""
        from pendulum import duration  # noqa: PLC0415  # loads for a tenth of a second

        new = [why for gap, why in self.met.values() if self._is_new(gap)]
        known = [
            f"{why} (for {duration(hours=(self.now - gap.first_met) // HOUR).in_words('en')})"
            for gap, why in self.met.values()
            if not self._is_new(gap)
        ]
        return new, known


def is_mass(gone: Collection[str], of: Collection[str]) -> bool:
    """Whether so many of the known jobs are gone at once that it may be the list's fault."""
    if len(gone) == len(of):
        return len(gone) >= FEW_JOBS
    return len(gone) > max(MOST_ABSENT, len(of) / 2)
