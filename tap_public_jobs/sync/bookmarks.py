"""The state in the bookmarks of Singer state, in this format and the one before."""

from __future__ import annotations

from typing import Any

from tap_public_jobs.api.models import HASH_BYTES, hash_of
from tap_public_jobs.sync.state import DamagedStateError, Entry, LogPosition, SyncState

Json = Any

HASH_LENGTH = HASH_BYTES * 4 // 3
NO_HASH = "-" * HASH_LENGTH


def read_bookmarks(bookmarks: dict[str, dict[str, Json]]) -> SyncState:
    """Read the state from the bookmarks of all streams.

    Raises:
        DamagedStateError: It is damaged, or of a newer format.
    """
    jobs, details = (bookmarks.get(name) or {} for name in ("jobs", "job_details"))
    if "sync" in jobs:
        return SyncState.read(jobs["sync"])
    try:
        return _read_format_1(jobs, details)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{type(error).__name__}: {error}"
        raise DamagedStateError(msg) from error


def write_bookmarks(bookmarks: dict[str, dict[str, Json]], state: SyncState) -> None:
    """Replace the state in the bookmarks, whatever its format was."""
    bookmarks["jobs"] = {"sync": state.write()}
    bookmarks.pop("job_details", None)


def _read_format_1(jobs: dict[str, Json], details: dict[str, Json]) -> SyncState:
    """Read the format that kept a ledger of details, with publicIds as hashes and without times.

    The next listing fills in what is unknown.
    """
    ledger = details.get("ledger") or {"format": 1, "ids": [], "fingerprints": "", "fetchedAt": []}
    if ledger["format"] != 1:
        msg = f"format {ledger['format']!r} is not known"
        raise ValueError(msg)
    changes = details.get("changes") or {}
    pending = {hash_of(public_id) for public_id in changes.get("pending", ())}
    hashes = _split(ledger["fingerprints"])
    public_ids = _split(ledger.get("publicIds") or NO_HASH * len(hashes))
    rows = zip(ledger["ids"], hashes, ledger["fetchedAt"], public_ids, strict=True)
    state = SyncState(
        jobs={
            key: Entry("", 0, None, "" if digest == NO_HASH or name in pending else digest, at)
            for key, digest, at, name in rows
        },
        versions={
            name: bookmark["version"]
            for name, bookmark in (("jobs", jobs), ("job_details", details))
            if "version" in bookmark
        },
        log=LogPosition(changes["log"], changes["position"]) if changes.get("log") else None,
    )
    return SyncState.read(state.write())  # checks every type


def _split(text: str) -> list[str]:
    return [text[at : at + HASH_LENGTH] for at in range(0, len(text), HASH_LENGTH)]
