"""Reads a state of the tap, to see whether a run has work to do.

A scheduler asks this every minute, for many organisations, before it starts Meltano. So this module
imports very little.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tap_public_jobs.errors import DamagedStateError
from tap_public_jobs.sync.state import SyncState
from tap_public_jobs.sync.stored import load


def read_state(path: str) -> SyncState:
    """Read a state, as the tap writes it or as `meltano state get` prints it.

    Args:
        path: Of a file, or `-` for stdin.

    Returns:
        An empty state if none can be read: then a run has work to do.
    """
    try:
        state = json.loads(sys.stdin.read() if path == "-" else Path(path).read_text("utf-8"))
        return load(state.get("singer_state", state))
    except (OSError, ValueError, AttributeError, RecursionError, DamagedStateError):
        return SyncState()  # AttributeError also if this process has no stdin
