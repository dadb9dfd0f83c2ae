"""Projects of the template, which copier makes of the last commit in an environment of its own."""

from __future__ import annotations

import json
import re
import shutil
import stat
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from dotenv import dotenv_values
from e2e.pipeline import Run, installed, run
from e2e.stores import Database
from e2e.targets import DUCKDB, Target, meltanolabs, psycopg_url
from e2e.truth import FIELDS, published
from harness import demo
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from support.plugins import REPOSITORY, definition

if TYPE_CHECKING:
    from public_jobs_sandbox.state import Sandbox

CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("cases.yml").read_text("utf-8"))
COPIER = "copier~=9.14"
ELSEWHERE = ("github", "kubernetes")
PROJECTS = {
    f"{warehouse}-{schedule}": CASES["secrets"]
    | {"warehouse": warehouse, "credentials": next(iter(secrets.values()), "")}
    | {"schedule": schedule, "alert": "none" if warehouse == "bigquery" else "webhook"}
    for warehouse, secrets in CASES["credentials"].items()
    for schedule in CASES["schedules"]
    if not (warehouse == "duckdb" and schedule in ELSEWHERE)
}
# Many projects in one process.
MAKE = """if True:
    import json, sys
    from copier import run_copy
    refused = {}
    for name, answers in json.load(sys.stdin).items():
        options = {"defaults": True, "unsafe": True, "skip_tasks": True, "quiet": True}
        try:
            run_copy(sys.argv[1], name, answers, **options)
        except ValueError as error:
            refused[name] = str(error)
    print(json.dumps(refused))
"""

# The folder of all projects, and what copier says of those that it refuses.
Made = tuple[Path, dict[str, str]]

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("template")]


def copier(*arguments: str | Path, folder: Path, **answers: str) -> str:
    data = [f"--data={name}={answer}" for name, answer in answers.items()]
    command = [installed(COPIER) / "copier", *arguments, "--trust", "--defaults", *data]
    return run(*command, folder=folder).succeeded().output


def commit(folder: Path, version: str) -> None:
    """Commit all files of a folder, and name the commit."""
    me = "git -c user.name=me -c user.email=me@example.com"
    script = f"git add --all && {me} commit --quiet --allow-empty -m All && git tag {version}"
    run("sh", "-c", script, folder=folder).succeeded()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone, whose template has a version."""
    clone = tmp_path_factory.mktemp("origin") / "tap-public-jobs"
    run("git", "clone", "--quiet", REPOSITORY, clone, folder=REPOSITORY).succeeded()
    commit(clone, "v99.1")
    return clone


@pytest.fixture(scope="module")
def made(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("projects")
    ignored = shutil.ignore_patterns(".git")  # copier is faster without
    files = shutil.copytree(source, folder / "template", ignore=ignored)
    answers = PROJECTS | {name: wrong for name, (wrong, _) in CASES["refused"].items()}
    given = json.dumps({name: CASES["common"] | it for name, it in answers.items()})
    output = run(installed(COPIER) / "python", "-c", MAKE, files, folder=folder, given=given)
    return folder, json.loads(output.succeeded().output.splitlines()[-1])


def test_answers_that_cannot_work_are_refused(made: Made) -> None:
    says = {name: says for name, (_, says) in CASES["refused"].items()}
    refused = {name: says[name] for name, error in made[1].items() if says[name] in error}
    assert refused == says


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_has_what_was_chosen_and_nothing_else(made: Made, name: str) -> None:
    folder = made[0] / name
    warehouse, schedule = name.split("-")
    files = CASES["files"]["all"] + CASES["files"][warehouse] + CASES["schedules"][schedule]
    found = [str(it.relative_to(folder)) for it in folder.rglob("*") if it.is_file()]
    assert sorted(found) == sorted(files)

    api_key, state, alert = CASES["secrets"].values()
    secrets = CASES["credentials"][warehouse] | {"TAP_PUBLIC_JOBS_API_KEY": api_key}
    if schedule in ELSEWHERE:
        secrets["MELTANO_DATABASE_URI"] = secrets.get("TARGET_POSTGRES_SQLALCHEMY_URL", state)
    if warehouse != "bigquery":
        secrets["ALERT_URL"] = alert
    lines = (folder / ".env").read_text("utf-8").splitlines()
    assert dotenv_values(folder / ".env") == secrets
    # As Docker and kubectl read it.
    assert dict(line.split("=", 1) for line in lines if not line.startswith("#")) == secrets
    others = " ".join((folder / it).read_text("utf-8") for it in found if it != ".env")
    assert [it for it in secrets.values() if it in others] == []
    if schedule == "github":
        assert set(re.findall(r"secrets\.(\w+) }}", others)) == secrets.keys()

    plugins = yaml.safe_load((folder / "plugins.yml").read_text("utf-8"))["plugins"]
    (tap,) = plugins["extractors"]
    assert tap == definition("extractors", "tap-public-jobs") | {"pip_url": tap["pip_url"]}
    assert plugins["loaders"] == [definition("loaders", f"target-{warehouse}")]
    assert [it["name"] for it in plugins["utilities"]] == [f"dbt-{warehouse}"]


IMPORT = "import runpy, sys; [print(runpy.run_path(it)['dag'].tasks) for it in sys.argv[1:]]"


def test_the_schedules_can_read_their_files(made: Made) -> None:
    folder, _ = made

    def read(files: str, *command: str | Path) -> str:
        found = list(folder.glob(f"*-*/{files}"))
        assert len(found) >= len(CASES["credentials"]) - 1  # DuckDB does not go everywhere
        return run(*command, *found, folder=folder).succeeded().output

    assert read("schedule/*.service", "systemd-analyze", "verify") == ""
    assert read("schedule/*.timer", "systemd-analyze", "verify") == ""
    # A retry would hide what no alert has reported.
    retried = read("schedule/*", "grep", "--files-with-matches", "RestartSec=\\|retries=")
    names = {Path(line).parts[-3] for line in retried.splitlines()}
    assert names == {
        name
        for name, answers in PROJECTS.items()
        if answers["schedule"] in ("systemd", "airflow") and answers["alert"] == "webhook"
    }
    kubernetes = installed("kubernetes-validate~=1.37") / "kubernetes-validate"
    assert "cronjob/public-jobs" in read("schedule/*.yml", kubernetes, "--strict")
    github = installed("check-jsonschema~=0.39") / "check-jsonschema"
    schema = ("--builtin-schema", "vendor.github-workflows")
    assert "validation done" in read(".github/workflows/*", github, *schema)
    options = ["--quiet", "--isolated", "--only-group=airflow", f"--project={REPOSITORY}"]
    airflow = [*uv_command(), "run", *options, "python", "-c", IMPORT]
    assert read("schedule/*.py", *airflow) == "[<Task(BashOperator): sync>]\n" * 4


MELTANO = """#!/bin/sh
flock --nonblock .lock true
echo "umask $(umask), locked $?: $*" >> calls
[ "$1" != run ] && exit $BUILD
[ -z "$SIGNALLED" ] || kill -TERM $PPID
exit $LOAD
"""
LOAD = "umask 0077, locked 1: run --no-install tap-public-jobs target-duckdb"
BUILD = "umask 0077, locked 1: invoke --no-install dbt-duckdb:build"
ALERTS: list[str] = []


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ALERTS.append(body["text"].partition("failed with status ")[2])
        self.send_response(204)
        self.end_headers()


def test_sync_builds_after_an_incomplete_load_keeps_its_status_and_alerts(made: Made) -> None:
    """With a Meltano that notes how it is called."""
    project = made[0] / "duckdb-none"
    assert "./setup" in run(project / "sync", folder=project).output
    (project / ".venv/bin").mkdir(parents=True)
    (project / ".venv/bin/python").symlink_to(sys.executable)
    meltano, calls = project / ".venv/bin/meltano", project / "calls"
    meltano.write_text(MELTANO, "utf-8")
    meltano.chmod(0o755)

    def sync(load: str, build: str, signalled: str = "") -> tuple[int, list[str], list[str]]:
        calls.write_text("", "utf-8")
        ALERTS.clear()
        given = {"ALERT_URL": url, "LOAD": load, "BUILD": build, "SIGNALLED": signalled}
        finished = run(project / "sync", folder=project.parent, **given)
        assert "secret" not in finished.output
        return finished.status, calls.read_text("utf-8").splitlines(), ALERTS.copy()

    with HTTPServer(("127.0.0.1", 0), Webhook) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/secret"
        assert sync("0", "0") == (0, [LOAD, BUILD], [])
        assert sync("1", "0") == (1, [LOAD, BUILD], ["1."])
        assert sync("0", "2") == (2, [LOAD, BUILD], ["2."])
        assert sync("1", "2") == (1, [LOAD, BUILD], ["1."])
        assert sync("3", "0", "yes") == (3, [LOAD], ["3."])
        server.shutdown()
    assert sync("1", "0") == (1, [LOAD, BUILD], [])  # nobody listens any more


def assert_holds(target: Target, folder: Path, database: str, sandbox: Sandbox) -> None:
    """Compare every row of the raw tables, and the titles in the final ones."""
    store = target.store(folder, database)
    assert isinstance(store, Database)
    for table in FIELDS:
        rows = target.rows(published(sandbox), table)
        assert store.published(table) == store.rows(table) == rows
    open_jobs = store.fetch("select id, job_title from analytics.open_jobs")
    titles = {row["id"]: row["job_title"] for row in open_jobs}
    assert titles == {job["id"]: job["jobTitle"] for job in published(sandbox)}


@pytest.mark.xdist_group("clone")  # beside the others
def test_duckdb_from_a_clone_with_cron(source: Path, tmp_path: Path) -> None:
    """Cron mails nothing until a run is incomplete, and that run is built too."""
    project, clone = tmp_path / "my-pipeline", source.name
    with demo(5) as (sandbox, settings):
        answers = {"base_url": settings["base_url"], "api_key": sandbox.key, "schedule": "cron"}
        made = copier("copy", clone, project, folder=source.parent, **answers)
        assert "The key works: 5 published jobs" in made
        assert sandbox.key not in made
        assert stat.filemode((project / ".env").stat().st_mode) == "-rw-------"

        crontab = (project / "schedule/crontab").read_text("utf-8")
        (line,) = re.findall(r"^0 4 \* \* \* (.+)$", crontab, re.MULTILINE)
        assert run("/bin/sh", "-c", line, folder=tmp_path) == Run(0, "")
        assert_holds(DUCKDB, project / "output", "", sandbox)

        sandbox.publish(make_jobs(6)[-1])
        refused = published(sandbox)[0]["publicId"]
        sandbox.fail_next("http_400", times=None, path=f"/{refused}")
        mail = run("/bin/sh", "-c", line, folder=tmp_path).output
        assert mail.startswith("A run failed:\n")
        assert "The sync is incomplete" in mail
        assert_holds(DUCKDB, project / "output", "", sandbox)


@pytest.mark.xdist_group("update")
def test_postgresql_and_an_update(source: Path, tmp_path: Path, database: str) -> None:
    """An update keeps what the user has changed, and the next run what was loaded."""
    project = tmp_path / "my-pipeline"
    target = meltanolabs("hard", "public_jobs")
    answers = {"warehouse": "postgres", "credentials": psycopg_url(database)}
    with demo(5) as (sandbox, tap):
        answers |= {"source": source.as_uri(), "api_key": sandbox.key, "base_url": tap["base_url"]}
        copier("copy", source, project, folder=tmp_path, **answers)
        output = run(project / "sync", folder=tmp_path).succeeded().output
        # One line says how the build ended, and none what it does.
        assert output.count("public_jobs: ") == 1
        assert "OK created" not in output
        assert "unit_test" not in output
        assert_holds(target, project, database, sandbox)

        secrets, settings = (project / ".env").read_text("utf-8"), project / "meltano.yml"
        settings.write_text(settings.read_text("utf-8").replace("refresh: all", "refresh: changed"))
        commit(project, "before")
        with (source / "template/sync.jinja").open("a") as script:
            script.write("# newer\n")
        commit(source, "v99.2")
        copier("update", folder=project)
        assert (project / "sync").read_text("utf-8").endswith("# newer\n")
        assert "_commit: v99.2" in (project / ".copier-answers.yml").read_text("utf-8")
        assert "refresh: changed" in settings.read_text("utf-8")
        assert (project / ".env").read_text("utf-8") == secrets

        sandbox.requests.clear()
        run(project / "sync", folder=tmp_path).succeeded()
        assert_holds(target, project, database, sandbox)
        assert len(sandbox.requests) == 1  # the list: state and `changed` have outlived the update
