"""Whether a run of the tap has work to do, by its state and the change log.

A scheduler asks this every minute, for many organisations, before it starts Meltano. So this module
imports very little.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tap_public_jobs.changelog import LogPosition

FORMAT = 2
"""Of the states that this module can read."""

DETAIL_HASH = 4
"""Index of the detail's hash in a job's entry. It is empty while the detail is pending."""


def bookmarks_of(path: str) -> Any:  # noqa: ANN401  # JSON
    """Read the bookmarks of a state, as the tap writes it or as `meltano state get` prints it.

    Args:
        path: Of a file, or `-` for stdin.

    Returns:
        None if there is no state that can be read.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        state = json.loads(text)
        return state.get("singer_state", state)["bookmarks"]
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None  # AttributeError also if this process has no stdin


def has_work(bookmarks: Any, place: LogPosition) -> bool:  # noqa: ANN401
    """Decide whether a run has work to do. A state that cannot be read has.

    Args:
        bookmarks: Of the state.
        place: How far the log has got.
    """
    try:
        sync = bookmarks["jobs"]["sync"]
        log, position = sync["log"]
        is_finished = sync["run"] is None and sync["listedAt"] is not None
        is_complete = is_finished and all(job[DETAIL_HASH] for job in sync["jobs"])
        # A smaller position means that an earlier copy of the log was restored.
        has_read_all = (log, position) == (place.log, place.position)
        return sync["format"] != FORMAT or not (is_complete and has_read_all)
    except (LookupError, TypeError, ValueError):
        return True
