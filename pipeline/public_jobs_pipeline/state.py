"""The state of the runs, which Meltano keeps."""

from contextlib import suppress
from pathlib import Path

from public_jobs_pipeline import meltano
from public_jobs_pipeline.project import ELSEWHERE, Flaw, Project, state_id_without_name

# The tap's state, where `public-jobs-webhook news` reads it.
STATE = Path(".meltano/state.json")
# The update of a project whose state's id had no name of the project leaves this file. Without it,
# the state of such an id may be that of another project with the same backend.
UNNAMED = Path(".state-without-name")


def take_along(project: Project) -> None:
    """Copy the state of a project from before the state's id had its name, once.

    Raises:
        Flaw: It could not be copied, and without it the dates of all jobs would start anew.
    """
    old, new = state_id_without_name(project), project.state_id
    # They are one until the user has merged the lines of the update in meltano.yml.
    if not UNNAMED.exists() or old == new:
        return
    if not meltano.get_state(new) and meltano.get_state(old):
        if meltano.quietly("state", "copy", "--force", old, new).returncode:
            message = f"The state {old} could not be copied to {new}."
            raise Flaw(message)
        print(f"Copied the state {old} to {new}, which has the project's name.", flush=True)
    if project.schedule not in ELSEWHERE:
        UNNAMED.unlink()


def keep(project: Project) -> None:
    """Write the tap's state where the next run of --if-news reads it."""
    with suppress(Flaw):
        if state := meltano.get_state(project.state_id):
            new = STATE.with_suffix(".new")
            new.write_bytes(state)
            new.replace(STATE)
