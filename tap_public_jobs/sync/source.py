"""What a run needs of an API: a cheap list, and a detail of each job that costs a request."""

import json
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from tap_public_jobs.limit.verdict import MAX_TRIES

# A JSON value, as Python has it.
Json = Any

# Text that is not empty, and has neither NUL nor half a surrogate pair.
_USABLE = re.compile("[^\0\ud800-\udfff]+")

# What identifies an item of the list; a detail is requested by its publicId.
KEYS = ("id", "publicId")


@dataclass(frozen=True, slots=True)
class JobRef:
    """What is needed to request a job's detail, and to decide whether the job has changed.

    Attributes:
        summary_hash: Hash of the summary in the list, without ignored fields.
        summary: Of the list, without withheld fields; None if the list does not show the job.
        ignored: Fields of the summary that do not show whether the job has changed.
    """

    id: str
    public_id: str
    summary_hash: str = ""
    summary: dict[str, Json] | None = field(default=None, compare=False, repr=False)
    ignored: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @property
    def compared(self) -> dict[str, Json]:
        """The fields of the summary that show whether the job has changed."""
        summary = self.summary or {}
        return {name: it for name, it in summary.items() if name not in self.ignored}


class Page(NamedTuple):
    """One response of the list operation (API page, "List envelope").

    A number is None if the response has no valid one.

    Attributes:
        size: Items per page, as the server reports it, or else as requested.
    """

    items: list[Json]
    size: int
    total: int | None

    @property
    def is_short(self) -> bool:
        """Whether the page has room for further items."""
        return len(self.items) < self.size


class Source(Protocol):
    """An API that lists jobs, and has a detail of each. Methods may be called from any thread."""

    def page(self, number: int) -> Page:
        """Fetch one page of the list, counted from 1.

        Raises:
            PageError: It cannot be read.
            TapError: The run cannot continue.
        """

    def detail(self, job: JobRef, tries: int = MAX_TRIES) -> dict[str, Json]:
        """Fetch the detail of one job.

        Raises:
            NotFoundError: The job is not published.
            RequestError: The detail cannot be read.
            TapError: The run cannot continue.
        """


def hash_of(value: Json) -> str:
    """Hash a JSON value into 8 characters, regardless of the order of its keys."""
    # States have such hashes: with others, each detail would be fetched again.
    text = json.dumps(value, sort_keys=True, default=str)
    digest = blake2b(text.encode(), digest_size=6).digest()
    return urlsafe_b64encode(digest).decode()


def hash_key(api_key: str) -> str:
    """Hash an API key, so that a state can recognise it and not reveal it."""
    return hash_of(["api_key", api_key])


def job_ref(summary: Json, ignored: frozenset[str] = frozenset()) -> JobRef | None:
    """Read the key of a summary; None if the job cannot be keyed.

    Both identifiers must be text that every URL and database can carry.
    """
    if not isinstance(summary, dict):
        return None
    job_id, public_id = (summary.get(name, 0) for name in KEYS)
    if all(isinstance(text, str) and _USABLE.fullmatch(text) for text in (job_id, public_id)):
        ref = JobRef(job_id, public_id, summary=summary, ignored=ignored)
        return replace(ref, summary_hash=hash_of(ref.compared))
    return None
