"""Whether a change log has news for a state of the tap.

A scheduler asks this every minute, for many organisations, before it starts Meltano. So this module
imports very little.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tap_public_jobs.changelog import Place

FORMAT = 2
"""Of the states that this module can read."""

DETAIL_HASH = 4
"""Index of the detail's hash in a job's entry. It is empty while the detail is pending."""


class Bookmark(NamedTuple):
    """What a state says about a log."""

    log: str
    position: int
    is_pending: bool
    """Whether the next run has work even without news: a run to finish, or details to fetch."""


def has_news(bookmark: Bookmark | None, place: Place) -> bool:
    """Decide whether a run has anything to do.

    Args:
        bookmark: Of the state, if it has one.
        place: Of the log.
    """
    if bookmark is None or bookmark.is_pending or bookmark.log != place.log:
        return True
    # A smaller position means that an earlier copy of the log was restored.
    return place.position != bookmark.position or place.forgotten > bookmark.position


def bookmark_of(text: str) -> Bookmark | None:
    """Find the bookmark in a state, as the tap writes it or as `meltano state get` prints it.

    Returns:
        None if the state has no bookmark or cannot be read.
    """
    try:
        state = json.loads(text)
        sync: dict[str, Any] = state.get("singer_state", state)["bookmarks"]["jobs"]["sync"]
        log, position = sync["log"]
        hashes = [job[DETAIL_HASH] for job in sync["jobs"]]
        unfinished = sync["run"] is not None or sync["listedAt"] is None
        known = sync["format"] == FORMAT
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    if not known or not isinstance(log, str) or type(position) is not int or position < 0:
        return None
    return Bookmark(log, position, unfinished or not all(hashes))


def read_state(path: str) -> str:
    """Read a file, or stdin for `-`; one that cannot be read is an empty state."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError, AttributeError):  # the last: this process has no stdin
        return ""
