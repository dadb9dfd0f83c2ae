"""Reads what `python -X importtime` writes."""

from __future__ import annotations

import re
from collections import Counter

OURS = "tap_public_jobs"
NAMED = ("singer_sdk", "requests", "pendulum", OURS)
"""Packages whose share is told."""

_LINE = re.compile(r"^import time: +(\d+) \| +\d+ \|( +)([\w.]+)$", re.MULTILINE)


def import_times(text: str) -> Counter[str]:
    """Add up which package of `NAMED` the time of each import is owed to.

    A module that is in none of them is owed to the one that imported it first. This project's own
    package is charged with its own modules only.

    Args:
        text: What was written to stderr; other lines are passed over.

    Returns:
        Microseconds by package; those of all others under the empty name.
    """
    times: Counter[str] = Counter()
    owners: list[tuple[int, str]] = []  # of the modules whose import is under way, by depth
    # A module stands after those that it imported: backwards it comes before them.
    for micros, indentation, module in reversed(_LINE.findall(text)):
        depth = len(indentation)
        while owners and owners[-1][0] >= depth:
            owners.pop()
        package = module.partition(".")[0]
        inherited = owners[-1][1] if owners else ""
        owner = package if package in NAMED else inherited.replace(OURS, "")
        owners.append((depth, owner))
        times[owner] += int(micros)
    return times
