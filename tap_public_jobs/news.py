"""The command `tap-public-jobs-news`: is there work for a run under `detail_refresh: notified`?"""

import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path

# Only what is quick to import, because a scheduler asks every few minutes.
from tap_public_jobs.errors import DamagedStateError, NotificationLogError
from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync.state import SyncState
from tap_public_jobs.sync.state_json import load
from tap_public_jobs.sync.work import has_work

NO_WORK = 1
FAILED = 2


def main() -> None:
    """Exit with 0 if a run of the tap has work to do, with 1 if not, with 2 on an error."""
    parser = argparse.ArgumentParser(
        description="Exit with 0 if a run of the tap has work to do, with 1 if not, with 2 on an "
        "error. The notification log is that in TAP_PUBLIC_JOBS_CHANGES_URL."
    )
    parser.add_argument(
        "state", help="a file with the tap's state, as `meltano state get` prints it; - for stdin"
    )
    path = parser.parse_args().state
    try:
        state = read_state(path)
        log = NotificationLog(os.environ.get("TAP_PUBLIC_JOBS_CHANGES_URL", ""))
        notifications = log.read(state.last_read.position if state.last_read else 0)
        sys.exit(0 if has_work(state, notifications, int(time.time())) else NO_WORK)
    except NotificationLogError as error:
        parser.exit(FAILED, f"Error: {error}\n")
    except Exception:  # noqa: BLE001  # Python would exit with 1
        traceback.print_exc()
    sys.exit(FAILED)


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
        return SyncState()  # AttributeError: no JSON object, or no stdin
