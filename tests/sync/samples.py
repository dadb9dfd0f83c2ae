"""Jobs, listings and states for the tests of what a run remembers and decides."""

from __future__ import annotations

from tap_public_jobs.api.models import JobRef, hash_of
from tap_public_jobs.sync.state import Entry, SyncState

# Seconds since the epoch.
NOW = 1_800_000_000

DAY = 86_400


def job(name: str, content: str = "a") -> JobRef:
    """A job as a listing shows it; another content is another summary."""
    return JobRef(name, f"public-{name}", hash_of(content))


def fetched(name: str, content: str = "a", age: int = 3600) -> Entry:
    """What is known of a job whose detail was fetched some seconds ago."""
    return Entry(f"public-{name}", 1000, None, hash_of(content), NOW - age)


def listed(name: str) -> Entry:
    """What is known of a job whose detail was never fetched."""
    return Entry(f"public-{name}", 1000, None)


def state_with(**jobs: Entry) -> SyncState:
    """What is known after a complete listing of these jobs."""
    return SyncState(jobs=dict(jobs), listed_at=2000)
