"""What Meltano shows its user, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from e2e.pipeline import Warehouse
from e2e.targets import TARGETS
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from e2e.pipeline import Project

REPOSITORY = Path(__file__).parents[2]


def test_a_refused_key_fails_the_run_in_one_line(project: Project, tmp_path: Path) -> None:
    """Nothing that is printed holds the key, and meltano.yml stays as it is.

    Without a project_id, Meltano would write one and format the file anew.
    """
    sandbox = Sandbox.demo(jobs=3)
    key = sandbox.key
    sandbox.revoke(key)
    with serving(sandbox) as base_url:
        run = project.sync(sandbox, base_url, Warehouse(tmp_path))

    assert run.status != 0
    (line,) = [line for line in run.output.splitlines() if "refused the key (401)" in line]
    assert "critical" in line
    assert "Settings → Integrations → API keys" in line
    assert "Traceback" not in run.output
    assert key not in run.output
    assert [request.status for request in sandbox.requests] == [401]
    now = (project.folder / "meltano.yml").read_text("utf-8")
    assert now == (REPOSITORY / "meltano.yml").read_text("utf-8")


def test_targets_at_the_end_of_a_pipe_are_those_that_meltano_installs() -> None:
    """But for those that meltano.yml does not have."""
    project = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))
    installed = {loader["pip_url"] for loader in project["plugins"]["loaders"]}
    piped = {target.requirement for target in TARGETS if target.requirement}
    assert piped - installed == {"pipelinewise-target-postgres==2.1.2"}
