"""The API's responses, as values."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import Any, NamedTuple, TypeGuard

Json = Any

HASH_BYTES = 6


class JobRef(NamedTuple):
    """What is needed to request one job's detail, and to see whether the job has changed.

    Attributes:
        summary_hash: Hash of the summary in the list.
    """

    id: str
    public_id: str
    summary_hash: str = ""


class Page(NamedTuple):
    """One response of the list operation (API page, "List envelope").

    A number is None if the response has no valid one.

    Attributes:
        size: Items per page, as the server reports it, or else as requested.
    """

    items: list[Json]
    size: int
    total: int | None


def hash_of(value: Json) -> str:
    """Hash a JSON value into 8 characters, regardless of the order of its keys."""
    text = json.dumps(value, sort_keys=True, default=str)
    # JSON can escape half a surrogate pair, which strict UTF-8 refuses.
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=HASH_BYTES).digest()
    return urlsafe_b64encode(digest).decode()


def hash_key(api_key: str) -> str:
    """Hash an API key, so that a state can recognise it and not reveal it."""
    return hash_of(["api_key", api_key])


def job_ref(summary: Json) -> JobRef | None:
    """Read the key of a summary; None if the job cannot be keyed.

    Both identifiers must be text that is not empty, and that every URL and database can carry:
    without half a surrogate pair, and without NUL.
    """
    if not isinstance(summary, dict):
        return None
    job_id, public_id = summary.get("id"), summary.get("publicId")
    if not _is_text(job_id) or not _is_text(public_id):
        return None
    return JobRef(job_id, public_id, hash_of(summary))


def _is_text(value: Json) -> TypeGuard[str]:
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
