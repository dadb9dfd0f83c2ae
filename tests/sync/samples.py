"""Jobs, listings and states for the tests of what a run remembers and decides."""

from tap_public_jobs.api.models import JobRef, hash_of
from tap_public_jobs.sync.state import Job, SyncState

# Seconds since the epoch.
NOW = 1_800_000_000

DAY = 86_400


def job(name: str, content: str = "a") -> JobRef:
    """A job as a listing shows it; another content is another summary."""
    return JobRef(name, f"public-{name}", hash_of(content))


def fetched(name: str, content: str = "a", age: int = 3600) -> Job:
    """What is known of a job whose detail was fetched some seconds ago."""
    row_hash = SyncState().row_hash(job(name, content))
    return Job(f"public-{name}", None, 1000, 2000, row_hash, NOW - age)


def listed(name: str) -> Job:
    """What is known of a job whose detail was never fetched."""
    return Job(f"public-{name}", None, 1000, 2000)


def state_with(**jobs: Job) -> SyncState:
    """What is known after a complete listing of these jobs."""
    return SyncState(run_time=2000, listed_at=2000, jobs=dict(jobs))
