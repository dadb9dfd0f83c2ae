"""What earlier runs fetched of each job, and so what a run still has to fetch.

Pure: times are given, and the state is a JSON value that somebody else keeps.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tap_public_jobs.listing import Job

Json = Any
Refresh = Literal["all", "changed"]
Reason = Literal["new", "changed", "notified", "refreshed"]
REASONS: tuple[Reason, ...] = ("new", "changed", "notified", "refreshed")

FORMAT = 1
"""Version of the state's form, for a later reader to migrate it by."""

FINGERPRINT_BYTES = 6
FINGERPRINT_LENGTH = FINGERPRINT_BYTES * 4 // 3

DAY = 86_400
"""Seconds."""

LATEST = 100_000_000_000
"""Seconds since the epoch, beyond which a time is a mistake of units."""

RESUMABLE = DAY
"""Seconds. A run interrupted longer ago is begun afresh: its first details are too old."""

FEWEST_BETWEEN_STATES = 100
"""Records."""


class Entry(NamedTuple):
    """What is known of a job's detail in the warehouse."""

    fingerprint: str
    """Of the summary that was listed when the detail was fetched."""
    fetched_at: int
    """Seconds since the epoch."""
    name: str = "-" * FINGERPRINT_LENGTH
    """Fingerprint of the publicId, which is all that a webhook tells of a job."""


class Run(NamedTuple):
    """A run that is not finished."""

    version: int
    started_at: int
    """Seconds since the epoch; later than whatever earlier runs fetched."""
    refresh: str
    exact: bool = True
    """Whether every row that it has written may stay when its version is activated."""


PENDING = Entry("-" * FINGERPRINT_LENGTH, 0)
"""A job that is published, and of whose detail no state says that it was written."""


class DamagedLedgerError(ValueError):
    """A state that cannot be read."""


class Ledger:
    """Per published job, the fingerprint of its summary and when its detail was fetched.

    Args:
        entries: By the job's id, in the order of the list.
        run: The run that is not finished, if there is one.
        unpublished: Ids of jobs that are no longer published, and whose rows do not tell yet.
    """

    def __init__(
        self,
        entries: dict[str, Entry] | None = None,
        run: Run | None = None,
        unpublished: Iterable[str] = (),
    ) -> None:
        self.entries = entries or {}
        self.run = run
        self.unpublished = list(unpublished)
        self._new: set[str] = set()
        self.columns: Json = None

    @classmethod
    def read(cls, state: Json) -> Self:
        """Read what `write` has written.

        Args:
            state: A JSON value; None for none.

        Raises:
            DamagedLedgerError: It is of another format, or none.
        """
        if state is None:
            return cls()
        try:
            return cls._read(state)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            msg = f"{type(error).__name__}: {error}"
            raise DamagedLedgerError(msg) from error

    @classmethod
    def _read(cls, state: Json) -> Self:
        if type(state["format"]) is not int or state["format"] != FORMAT:
            msg = f"format {state['format']!r} is not known"
            raise ValueError(msg)
        ids, prints, times = state["ids"], state["fingerprints"], state["fetchedAt"]
        names = state.get("publicIds", "-" * len(prints))
        unpublished = state.get("unpublished", [])
        if not all(isinstance(it, list) for it in (ids, times, unpublished)):
            msg = "its columns are not lists"
            raise TypeError(msg)
        keys = [*ids, *unpublished]
        if not all(isinstance(key, str) for key in keys) or not all(map(_is_time, times)):
            msg = "its ids are not text, or its times no times"
            raise TypeError(msg)
        rows = zip(ids, _split(prints), times, _split(names), strict=True)
        entries = {key: Entry(*values) for key, *values in rows}
        ledger = cls(entries, _read_run(state.get("run")), unpublished)
        ledger.columns = state.get("columns")
        return ledger

    def write(self) -> dict[str, Json]:
        """Return the state as JSON, in columns, which take half the space of one object a job."""
        return {
            "format": FORMAT,
            "ids": list(self.entries),
            "fingerprints": "".join(entry.fingerprint for entry in self.entries.values()),
            "fetchedAt": [entry.fetched_at for entry in self.entries.values()],
            "publicIds": "".join(entry.name for entry in self.entries.values()),
            # Null and not absent, should somebody merge this with an earlier state.
            "run": list(self.run) if self.run else None,
            "unpublished": self.unpublished,
            "columns": self.columns,
        }

    def note_columns(self, columns: Json) -> bool:
        """Note what rows are made of from now on, and forget all details that are not.

        Args:
            columns: The names of the columns, and whatever else makes a row another one.

        Returns:
            Whether there were any.
        """
        before, self.columns = self.columns, fingerprint(columns)
        if before == self.columns or not self.entries:
            return False
        self.entries = dict.fromkeys(self.entries, PENDING)
        self.run = None
        return True

    def plan(  # noqa: PLR0913  # each is a fact that decides
        self,
        jobs: Iterable[Job],
        refresh: Refresh,
        now: float,
        max_age: float,
        new_version: Callable[[], int],
        *,
        notified: Collection[str] = (),
        all_listed: bool = True,
    ) -> dict[Job, Reason]:
        """Begin a run, or go on with the one that was interrupted, and tell what it has to fetch.

        Args:
            jobs: The published jobs; all others leave the ledger.
            refresh: Which details the run fetches again.
            now: Seconds since the epoch.
            max_age: Seconds. Under `changed`, a detail is fetched again between half this age and
                this age, each at a point of its own, so that not all expire in one run.
            new_version: Answers a version that no earlier run had.
            notified: The publicIds of jobs that have changed since, as far as webhooks told.
            all_listed: Whether the jobs are known to be all that are published; if not, the others
                stay in the ledger.

        Returns:
            The jobs whose details are to be fetched, and why, in their order.
        """
        by_id = {job.id: job for job in jobs}
        # Times from a clock that was put back since are worth nothing.
        known = {
            key: entry._replace(fetched_at=1) if entry.fetched_at > now + DAY else entry
            for key, entry in self.entries.items()
        }
        run = self.run
        if run and all_listed and known.keys() - by_id.keys():
            # It may have written the rows of those that are gone, even if no state tells.
            run = run._replace(exact=False)
        if run is None or not _can_go_on(run, refresh, now):
            latest = max((entry.fetched_at for entry in known.values()), default=0)
            run = Run(new_version(), max(int(now), latest + 1), refresh)
        self.run = run
        self.entries = known
        self.keep(by_id if all_listed else known | by_id)
        self.entries = {key: self.entries.get(key, PENDING) for key in [*by_id, *self.entries]}
        self._new = by_id.keys() - known.keys()
        plan: dict[Job, Reason] = {}
        for job in by_id.values():
            if reason := self._reason(job, run, refresh, now, max_age):
                plan[job] = reason
            elif job.public_id in notified:
                plan[job] = "notified"
        return plan

    @property
    def owes(self) -> bool:
        """Whether details may be missing that no webhook has named."""
        return self.run is not None or not self.entries or PENDING in self.entries.values()

    def expect(self, jobs: Iterable[Job]) -> bool:
        """Note that the rows of jobs are about to be written.

        Returns:
            Whether one was never listed, which a state should tell before its row.
        """
        names = {job.id: fingerprint(job.public_id) for job in jobs if job.id not in self.entries}
        if not names:
            return False
        # Other jobs had these publicIds, and have them no more.
        taken = set(names.values())
        self.keep({key for key, entry in self.entries.items() if entry.name not in taken})
        self.entries |= {key: PENDING._replace(name=name) for key, name in names.items()}
        return True

    def ids(self, public_ids: Iterable[str]) -> dict[str, str]:
        """Tell the ids of the jobs whose details were fetched by these publicIds, as far as any."""
        keys = {entry.name: key for key, entry in self.entries.items()}
        names = {public_id: fingerprint(public_id) for public_id in public_ids}
        return {public_id: keys[name] for public_id, name in names.items() if name in keys}

    def keep(self, published: Collection[str]) -> None:
        """Note that no other jobs than these are published."""
        # Also of those that are pending: a run that was interrupted may have written their rows
        # after its last state.
        known = dict.fromkeys([*self.unpublished, *self.entries])
        self.unpublished = [key for key in known if key not in published]
        self.entries = {key: it for key, it in self.entries.items() if key in published}

    @property
    def version(self) -> int:
        """The version of the run; 0 if there is none."""
        return self.run.version if self.run else 0

    def done(self, job: Job, now: float) -> None:
        """Note that a job's detail has been written.

        Args:
            job: As it was listed.
            now: Seconds since the epoch.
        """
        fetched_at = max(int(now), self.run.started_at if self.run else 0)
        self.entries[job.id] = Entry(job.fingerprint, fetched_at, fingerprint(job.public_id))
        if job.id in self.unpublished:  # under an earlier publicId
            self.unpublished.remove(job.id)

    def gone(self, job: Job) -> None:
        """Note that a job turned out to be unpublished."""
        name = self.entries.get(job.id, PENDING).name
        if not job.fingerprint and name != fingerprint(job.public_id):
            return  # not listed, and since fetched under another publicId
        if job.id in self.entries and job.id not in self._new:
            self.unpublished.append(job.id)
        entry = self.entries.pop(job.id, PENDING)
        if self.run and entry.fetched_at >= self.run.started_at:
            self.run = self.run._replace(exact=False)

    @property
    def whole(self) -> bool:
        """Whether this run, or its part before an interruption, has written just what there is."""
        run = self.run
        return (
            run is not None
            and run.exact
            and all(entry.fetched_at >= run.started_at for entry in self.entries.values())
        )

    def finish(self) -> None:
        """Note that the run owes nothing any more."""
        self.run = None

    def _reason(
        self, job: Job, run: Run, refresh: Refresh, now: float, max_age: float
    ) -> Reason | None:
        entry = self.entries[job.id]
        if entry.fingerprint == PENDING.fingerprint:
            return "new"
        if entry.fingerprint != job.fingerprint:
            return "changed"
        if entry.fetched_at >= run.started_at:
            return None
        age = now - entry.fetched_at
        expired = refresh == "changed" and (not max_age or age >= max_age * _share(job.id))
        return "refreshed" if run.refresh == "all" or expired else None


def between_states(jobs: int, share: int = 20) -> int:
    """Tell how many records come between two states, so that their sum is linear in the jobs."""
    return max(FEWEST_BETWEEN_STATES, jobs // share)


def _can_go_on(run: Run, refresh: Refresh, now: float) -> bool:
    # Under `changed` rows of unpublished jobs are kept anyway. A run of all goes on only if
    # activating its version leaves just what is published.
    recent = abs(now - run.started_at) < RESUMABLE
    return recent and (refresh == "changed" or (run.refresh == "all" and run.exact))


def _read_run(run: Json) -> Run | None:
    if run is None:
        return None
    version, started_at, refresh, exact = run
    if not (_is_time(version) and _is_time(started_at) and isinstance(exact, bool)):
        msg = f"its run is {run!r:.100}"
        raise TypeError(msg)
    return Run(version, started_at, str(refresh), exact)


def _is_time(value: Json) -> bool:
    return type(value) is int and 0 <= value <= LATEST


def _split(text: Json) -> list[str]:
    if not isinstance(text, str):
        msg = "its fingerprints are not text"
        raise TypeError(msg)
    length = FINGERPRINT_LENGTH
    return [text[at : at + length] for at in range(0, len(text), length)]


def fingerprint(value: Json) -> str:
    """Condense a JSON value to a few characters that change when anything in it does."""
    text = json.dumps(value, sort_keys=True, default=str)
    return urlsafe_b64encode(_digest(text)).decode()


def _share(name: str) -> float:
    """A number from 0.5 to 1 that is always the same for a name."""
    return 0.5 + int.from_bytes(_digest(name)) / (1 << 8 * FINGERPRINT_BYTES) / 2


def _digest(text: str) -> bytes:
    # JSON can escape half a surrogate pair, which strict UTF-8 refuses.
    return blake2b(text.encode(errors="surrogatepass"), digest_size=FINGERPRINT_BYTES).digest()
