"""Which fields of the list changed, if most jobs did: it may be one that always does.

A state has one hash per job. So of a few jobs it has a hash of each field, too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from tap_public_jobs.api.models import KEYS, JobRef, hash_of

# Per job, a hash of each field of its summary.
Sample = dict[str, dict[str, str]]

MOST_JOBS = 3


def sample_of(jobs: Mapping[str, JobRef]) -> Sample:
    """Hash each field of a few listed jobs, the same ones for as long as they are published."""
    few = [jobs[job_id] for job_id in sorted(jobs)[:MOST_JOBS]]
    return {ref.id: {name: hash_of(value) for name, value in ref.compared.items()} for ref in few}


def differences(last: Sample, now: Sample, ignored: frozenset[str]) -> list[str]:
    """Return the fields that differ in most of the jobs that both samples have.

    A field that only one of them has differs, unless it is ignored now. Identifiers are left out,
    because to ignore them would be wrong.
    """
    left_out = ignored.union(KEYS)
    jobs = last.keys() & now.keys()
    names = Counter(name for job_id in jobs for name in _differ(last[job_id], now[job_id]))
    return [name for name, count in names.items() if count > len(jobs) / 2 and name not in left_out]


def _differ(last: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    return (name for name in {**last, **now} if last.get(name) != now.get(name))
