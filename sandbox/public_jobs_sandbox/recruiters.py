"""What the recruiters of an organisation do, from a seed: they open, close, edit and reprice jobs.

The demo plays eight weeks of it at night, with real programs. A test plays a year of it at all
hours, on an API in memory.
"""

from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random

from public_jobs_sandbox.postings import Job, invented_jobs, renamed
from public_jobs_sandbox.state import Sandbox, SeenRequest

# What happens on one working day in eight weeks, counted from 0.
CLOSED, REOPENED, RENAMED, RETITLED, RAISED, QUARTER_ENDS = 6, 16, 13, 24, 29, 34
WORKING_DAYS = 40
# The detail of the retitled job fails in some nights.
FAILING_NIGHTS = 4
# How many of the latest jobs stay open.
YOUNGEST = 15


class Recruiters:
    """What recruiters do in the portal, the same for the same seed; eight weeks over and over.

    Args:
        sandbox: Whose first organisation they work for.
        seed: Of all that they choose.
    """

    def __init__(self, sandbox: Sandbox, seed: int = 11) -> None:
        self._sandbox = sandbox
        self._random = Random(seed)  # noqa: S311 - a story, not secrets
        self._at_first = {*sandbox.organisation.postings}
        self._new = (job for job in invented_jobs() if job["publicId"] not in self._at_first)
        self._returns = self._any()
        self._fails, self._nights_failing = "", 0
        self._rename: Callable[[Job], Job] = lambda _: {}
        self._days = cycle(range(WORKING_DAYS))
        sandbox.fail_next("http_400", times=None, path=self._is_failing)

    def end_night(self) -> None:
        """Count the nights in which a detail fails."""
        self._nights_failing = max(0, self._nights_failing - 1)

    def work(self) -> Iterator[str]:
        """Make the changes of a working day, one with each step, and yield what the demo prints."""
        for _ in range(self._random.choice((0, 1, 2, 2, 3, 5))):
            self._open()
            yield ""
        for _ in range(self._random.choice((0, 1, 1, 2, 2, 4))):
            self._close()
            yield ""
        self._raise_pay(self._any()["publicId"], self._random.choice((1.03, 1.05, 1.08)))
        yield ""
        day = next(self._days)
        if day == CLOSED:
            self._sandbox.unpublish(self._returns["publicId"])
        if day == REOPENED:
            self._sandbox.publish(self._returns["publicId"])
        if day == RETITLED:
            job = self._published()[0]
            self._sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle'].strip()} (all levels)")
            self._fails, self._nights_failing = job["publicId"], FAILING_NIGHTS
        yield ""
        for _ in range(9 if day == QUARTER_ENDS else 0):
            self._close()
            yield ""
        for job in self._published() if day == RAISED else ():
            if job["department"] == "Sales":
                self._raise_pay(job["publicId"], 1.04)
                yield ""
        if day == RENAMED:
            self._rename = renamed("People", "People & Culture")
            self._sandbox.edit_all(self._rename)
            yield "The department People is now called People & Culture."

    def _is_failing(self, request: SeenRequest) -> bool:
        return self._nights_failing > 0 and request.path.endswith(f"/{self._fails}")

    def _published(self) -> list[Job]:
        return [it.job for it in self._sandbox.organisation.published()]

    def _any(self) -> Job:
        """One of the older half, but not the first, whose detail is to fail."""
        jobs = self._published()
        return self._random.choice(jobs[1 : len(jobs) // 2])

    def _open(self) -> None:
        """Half of what is new is in two departments, which grow."""
        grows = self._random.random() < 0.5  # noqa: PLR2004
        for job in self._new:
            if job["department"] in {"Engineering", "Operations"} or not grows:
                self._sandbox.publish(job | self._rename(job))
                return

    def _close(self) -> None:
        """Half of what closes has opened since the first night: its time is known."""
        opened = [it for it in self._published() if it["publicId"] not in self._at_first]
        known = opened[:-YOUNGEST]
        is_known = known and self._random.random() < 0.5  # noqa: PLR2004
        job = self._random.choice(known) if is_known else self._any()
        self._sandbox.unpublish(job["publicId"])

    def _raise_pay(self, public_id: str, factor: float) -> None:
        job = self._sandbox.organisation.postings[public_id].job
        if job["maxSalary"]:
            digits = -2 if job["salaryPeriod"] == "year" else 2
            amounts = {it: round(job[it] * factor, digits) for it in ("minSalary", "maxSalary")}
            self._sandbox.edit(public_id, **amounts)
