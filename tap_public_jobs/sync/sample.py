"""Which fields of the list changed, if most jobs did: it may be one that always does.

A state has one hash per job. So of a few jobs it has a hash of each field, too.
"""

from collections import Counter
from collections.abc import Mapping

from tap_public_jobs.api.models import KEYS, JobRef, hash_of

# Per job, a hash of each field of its summary.
Sample = dict[str, dict[str, str]]

MOST_JOBS = 8


def sample_of(jobs: Mapping[str, JobRef]) -> Sample:
    """Hash each field of a few listed jobs, the same ones for as long as they are published."""
    few = [jobs[job_id] for job_id in sorted(jobs)[:MOST_JOBS]]
    return {ref.id: {name: hash_of(value) for name, value in ref.compared.items()} for ref in few}


def differences(last: Sample, now: Sample, ignored: frozenset[str]) -> dict[str, set[str]]:
    """Return the jobs of both samples that changed, and the fields in which each differs.

    A field that only one of them has differs, unless it is ignored now. Identifiers are left out,
    because to ignore them would be wrong.
    """
    left_out = ignored.union(KEYS)
    both = last.keys() & now.keys()
    differ = {job_id: _differ(last[job_id], now[job_id]) - left_out for job_id in both}
    return {job_id: names for job_id, names in differ.items() if names}


def in_most(differ: Mapping[str, set[str]]) -> list[str]:
    """Return the fields in which most of these jobs differ."""
    counts = Counter(name for names in differ.values() for name in names)
    return sorted(name for name, count in counts.items() if count > len(differ) / 2)


def _differ(last: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    return {name for name in {**last, **now} if last.get(name) != now.get(name)}
