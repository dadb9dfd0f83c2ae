"""The state of the runs, which Meltano keeps."""

from contextlib import suppress
from pathlib import Path

from public_jobs_pipeline import meltano
from public_jobs_pipeline.project import Flaw, Project

# The tap's state, where `tap-public-jobs-news` reads it.
STATE = Path(".meltano/state.json")


def keep(project: Project) -> None:
    """Write the tap's state where the next run of --if-news reads it."""
    with suppress(Flaw):
        if state := meltano.get_state(project.state_id):
            new = STATE.with_suffix(".new")
            new.write_bytes(state)
            new.replace(STATE)
