"""Projects of the template, which copier makes of the last commit in an environment of its own."""

import json
import re
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values
from e2e.pipeline import (
    REPOSITORY,
    Finished,
    definition,
    environment,
    hearing,
    installed,
    program,
    run,
)
from e2e.scenario import published
from e2e.stores import Database
from e2e.targets import DUCKDB, Target, meltanolabs, psycopg_url
from emulators.engines import BUCKET, moto
from harness import demo
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.state import Sandbox
from stand_ins import CASES as PIPELINE_CASES
from stand_ins import DRIVER, PROGRAMS

CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("cases.yml").read_text("utf-8"))
COPIER = "copier~=9.14"
ELSEWHERE = ("github", "kubernetes")
WEBHOOKS = ("cron", "systemd", "airflow")
NOWHERE = "file:///nowhere"
PROJECTS: dict[str, dict[str, Any]] = {
    f"{warehouse}-{schedule}": CASES["secrets"]
    | {"warehouse": warehouse, "credentials": next(iter(secrets.values()), "")}
    | {"schedule": schedule, "webhooks": schedule in WEBHOOKS}
    | ({"source": NOWHERE} if schedule in ELSEWHERE else {})
    | {"alert": "none" if warehouse == "bigquery" or schedule == "none" else "message"}
    | {"digest": "none" if schedule == "none" else "week"}
    for warehouse, secrets in CASES["credentials"].items()
    for schedule in CASES["schedules"]
    if not (warehouse == "duckdb" and schedule in ELSEWHERE)
}
PROJECTS["duckdb-cron"]["alert"] = "mail"
# The folder of all projects, and what copier says of those that it refuses.
Made = tuple[Path, dict[str, str]]

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("template")]


def copier(*arguments: str | Path, where: Path, **answers: str) -> str:
    data = [f"--data={name}={answer}" for name, answer in answers.items()]
    command = [installed(COPIER) / "copier", *arguments, "--trust", "--defaults", *data]
    return run(*command, folder=where).succeeded().output


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
    folder = tmp_path_factory.mktemp("my projects")  # with a space
    ignored = shutil.ignore_patterns(".git")  # copier is faster without
    files = shutil.copytree(source, folder / "template", ignore=ignored)
    answers = PROJECTS | {name: wrong for name, (wrong, _) in CASES["refused"].items()}
    wrong = (it for it, works in PIPELINE_CASES["addresses"].items() if not works)
    answers |= {it: {"warehouse": "postgres", "credentials": f"{DRIVER}{it}"} for it in wrong}
    copier = program(installed(COPIER) / "copier", "copier._cli")  # many projects by one import
    refused = {}
    data = folder / "answers.json"
    options = ("--trust", "--defaults", "--skip-tasks", "--quiet", "--data-file", data)
    for name, given in answers.items():
        data.write_text(json.dumps(CASES["common"] | given), "utf-8")
        ended = copier.run(["copy", files, folder / name, *options], environment())
        if ended.returncode:
            refused[name] = ended.stderr
    return folder, refused


def test_answers_that_cannot_work_are_refused(made: Made) -> None:
    says = {name: says for name, (_, says) in CASES["refused"].items()}
    refused = {name: it for name, it in says.items() if it in made[1].get(name, "")}
    assert refused == says


def test_the_questions_refuse_an_address_that_cannot_work(made: Made) -> None:
    addresses = PIPELINE_CASES["addresses"]
    refused = {it: "% is %25, @ is %40" not in made[1].get(it, "") for it in addresses}
    assert refused == addresses


def test_an_update_has_no_answer_that_replaces_a_secret() -> None:
    """Copier saves no secrets: an update takes their defaults, and an empty one keeps the line."""
    questions = yaml.safe_load((REPOSITORY / "pipeline" / "questions.yml").read_text("utf-8"))
    secrets = {name: it["default"] for name, it in questions.items() if "secret" in it}
    assert secrets.keys() >= {"api_key", "credentials", "changes_url", "digest_url", "ping_url"}
    assert secrets == dict.fromkeys(secrets, "")


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_has_what_was_chosen_and_nothing_else(made: Made, name: str) -> None:
    folder = made[0] / name
    warehouse, schedule = name.split("-")
    files = CASES["files"]["all"] + CASES["files"][warehouse] + CASES["schedules"][schedule]
    found = [str(it.relative_to(folder)) for it in folder.rglob("*") if it.is_file()]
    assert sorted(found) == sorted(files)

    given = CASES["secrets"]
    secrets = CASES["credentials"][warehouse] | {"TAP_PUBLIC_JOBS_API_KEY": given["api_key"]}
    if schedule in ELSEWHERE:
        secrets["MELTANO_DATABASE_URI"] = given["state_url"]
    if schedule != "none":
        secrets["PING_URL"] = given["ping_url"]
        if PROJECTS[name]["alert"] == "message":
            secrets["ALERT_URL"] = given["alert_url"]
        digest = {"DIGEST_URL": given["digest_url"]}
        secrets |= digest if warehouse in {"duckdb", "postgres"} else {}
    if schedule in WEBHOOKS:
        secrets["TAP_PUBLIC_JOBS_CHANGES_URL"] = given["changes_url"]
    lines = (folder / ".env").read_text("utf-8").splitlines()
    assert dotenv_values(folder / ".env") == secrets
    # As Docker and kubectl read it.
    assert dict(line.split("=", 1) for line in lines if not line.startswith("#")) == secrets
    required = dotenv_values(folder / ".env.example")
    assert required == dict.fromkeys(secrets.keys() - {"PING_URL", "DIGEST_URL"}, "")
    others = " ".join((folder / it).read_text("utf-8") for it in found if it != ".env")
    assert [it for it in secrets.values() if it in others] == []
    if schedule == "github":
        assert set(re.findall(r"secrets\.(\w+) }}", others)) == secrets.keys()
    assert CASES["holds"].get(schedule, "").format(folder=folder) in others

    def read(file: str) -> Any:
        return yaml.safe_load((folder / file).read_text("utf-8"))

    settings = read("meltano.yml")
    # As the page on the network says; dbt ignores the flags of a package.
    for sender in (settings, read("transform/dbt_project.yml")["flags"]):
        assert sender["send_anonymous_usage_stats"] is False

    if warehouse == "snowflake":
        names = ("account", "user", "database", "warehouse")
        answers = {name: CASES["common"][f"snowflake_{name}"] for name in names}
        profiles = read("transform/profiles.yml")
        (loader,) = settings["environments"][0]["config"]["plugins"]["loaders"]
        for config in (loader["config"], profiles["public_jobs"]["outputs"]["snowflake"]):
            assert {name: config[name] for name in names} == answers

    (of_tap,) = settings["environments"][0]["config"]["plugins"]["extractors"]
    refresh = "changed" if PROJECTS[name]["webhooks"] else "all"
    assert of_tap["config"]["detail_refresh"] == refresh

    plugins = read("plugins.yml")["plugins"]
    (tap,) = plugins["extractors"]
    assert tap == definition("extractors", "tap-public-jobs") | {"pip_url": tap["pip_url"]}
    assert plugins["loaders"] == [definition("loaders", f"target-{warehouse}")]
    assert [it["name"] for it in plugins["utilities"]] == [f"dbt-{warehouse}"]


IMPORT = """
import runpy, sys
from airflow.sdk import DAG
dags = []
init = DAG.__attrs_post_init__
DAG.__attrs_post_init__ = lambda dag: (init(dag), dags.append(dag))
for file in sys.argv[1:]:
    runpy.run_path(file)
for dag in dags:
    print(dag.dag_id, dag.tasks)
"""


def test_the_schedules_can_read_their_files(made: Made) -> None:
    folder, _ = made

    def read(files: str, *command: str | Path) -> str:
        found = list(folder.glob(f"*-*/{files}"))
        assert len(found) >= len(CASES["credentials"]) - 1  # DuckDB does not go everywhere
        return run(*command, *found, folder=folder).succeeded().output

    assert read("schedule/*.service", "systemd-analyze", "verify") == ""
    assert read("schedule/*.timer", "systemd-analyze", "verify") == ""
    kubernetes = installed("kubernetes-validate~=1.37") / "kubernetes-validate"
    assert "cronjob/acme-jobs" in read("schedule/*.yml", kubernetes, "--strict")
    github = installed("check-jsonschema~=0.39") / "check-jsonschema"
    schema = ("--builtin-schema", "vendor.github-workflows")
    assert "validation done" in read(".github/workflows/*", github, *schema)
    zizmor = ("--offline", "--no-progress", "--persona=regular")
    assert "No findings to report" in read(
        ".github/workflows/*", installed("zizmor") / "zizmor", *zizmor
    )
    options = ["--quiet", "--isolated", "--no-project", "--with=apache-airflow~=3.3"]
    airflow = [*uv_command(), "run", *options, "python", "-c", IMPORT]
    dags = "acme_jobs {0}\nacme_jobs_news {0}\n".format("[<Task(BashOperator): sync>]")
    assert read("schedule/*.py", *airflow) == dags * 4


Heard = list[tuple[str, Any]]


# Of the package, from the clone, and the program that sends messages.
PACKAGE = "apprise~=2.2 python-dotenv pyyaml psutil"


def stand_in(folder: Path) -> dict[str, str]:
    """Put stand-ins for its programs into a project, and return their variables."""
    python = installed(PACKAGE) / "python"
    run = f'#!/bin/sh\nexec {python} -m public_jobs_pipeline "$@"\n'
    for name, text in (PROGRAMS | {".venv/bin/public-jobs": run}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
        (folder / name).chmod(0o755)
    (folder / ".venv/folder").write_text(f"{folder}\n", "utf-8")
    (folder / "output/warehouse.duckdb").write_text("rows", "utf-8")
    return {
        "PATH": f"{folder}/bin:/usr/bin:/bin",
        "PYTHONPATH": str(REPOSITORY / "pipeline"),
        "FAILS": "none",
        "WAITS": "",
    }


class ProjectCopy:
    """A copy of a project, with other programs, and with addresses that listen."""

    def __init__(self, made: Path, tmp_path: Path, heard: Heard, address: str) -> None:
        self.made, self.heard = made, heard
        self.folder = folder = shutil.copytree(made, tmp_path / "my projects" / made.name)
        self.variables = {
            "HOSTNAME": "pod-1",
            "PING_URL": f"http://{address}/ping",
            "ALERT_URL": f"json://{address}/secret",
        }
        self.variables |= stand_in(folder)

    def command(self) -> str:
        """What the schedule runs."""
        schedule = self.folder.name.partition("-")[2]
        text = (self.folder / CASES["schedules"][schedule][0]).read_text("utf-8")
        (found,) = re.finditer(f"^{CASES['commands'][schedule]}$", text, re.MULTILINE)
        return " ".join(found.groups()).replace(str(self.made), str(self.folder))

    def run(self, command: str, **variables: str) -> Finished:
        """Run a command of the project, or of its schedule, and forget what was heard before."""
        (self.folder / "calls").write_text("", "utf-8")
        self.heard.clear()
        script = f"exec {command}" if command.startswith("./") else command
        ended = run("/bin/sh", "-c", script, folder=self.folder, **self.variables | variables)
        assert "secret" not in ended.output
        return ended


def last_two(output: str) -> str:
    return "\n".join(output.rstrip().splitlines()[-2:])


@pytest.fixture
def project(made: Made, tmp_path: Path) -> Iterator[Callable[[str], ProjectCopy]]:
    heard: Heard = []

    def take(path: str, body: bytes) -> None:
        sent = json.loads(body) if body else {"title": "GET", "message": path}
        heard.append((sent["title"], sent["message"]))

    with hearing(take) as address:
        yield lambda name: ProjectCopy(made[0] / name, tmp_path, heard, address)


ASK = "Ask them: uvx --from duckdb-cli duckdb -readonly output/warehouse-copy.duckdb"
SCHEDULED = ["duckdb-systemd", "duckdb-airflow", "postgres-github", "postgres-kubernetes"]


@pytest.mark.parametrize("name", ["duckdb-cron", "postgres-cron", *SCHEDULED])
def test_each_schedule_reports_a_success_and_a_failed_retry(
    project: Callable[[str], ProjectCopy], name: str
) -> None:
    """What cron gets on stderr it mails, which is nothing if alerts are messages."""
    it = project(name)
    schedule = name.partition("-")[2]

    assert it.run(it.command(), LOADS="done").status == 0
    assert it.heard == [("GET", "/ping")]

    failed = it.run(it.command(), LOADS="refused refused")
    assert failed.status == 1
    ((title, message),) = it.heard
    reason, where = message.splitlines()
    assert title == f"{name} failed"
    assert reason == "The load failed: The API refused the key."
    assert where.startswith(f"Host: {socket.gethostname()}, project: {name}. Log: ")
    assert CASES["log_of"][schedule] in where
    log = it.folder / "output/sync.log"
    assert (message in failed.output) is (name != "postgres-cron")
    assert not log.exists() or "The load failed: " in log.read_text("utf-8")
    # Nobody listens any more.
    it.variables |= {"ALERT_URL": "json://127.0.0.1:1/secret", "PING_URL": "http://127.0.0.1:1/s"}
    for loads, status, says in (
        ("refused refused", 1, "No alert was sent. "),
        ("done", 0, "PING_URL was not reached: "),
    ):
        failed = it.run(it.command(), LOADS=loads)
        assert failed.status == status
        written = log.read_text("utf-8") if name == "postgres-cron" else failed.output
        assert says in written
        assert "secret" not in written


def test_alerts_and_pings_go_through_the_proxy_that_env_names(
    project: Callable[[str], ProjectCopy],
) -> None:
    it = project("duckdb-systemd")
    proxy = it.variables["PING_URL"].removesuffix("/ping")
    with (it.folder / ".env").open("a", encoding="utf-8") as file:
        file.write(f"HTTP_PROXY={proxy}\n")
    it.variables |= {
        "PING_URL": "http://ping.invalid/up",
        "ALERT_URL": "json://alert.invalid/secret",
    }

    assert it.run(it.command(), LOADS="done").status == 0
    assert it.heard == [("GET", "http://ping.invalid/up")]
    assert it.run(it.command(), LOADS="refused refused").status == 1
    assert [title for title, _ in it.heard] == ["duckdb-systemd failed"]
    (it.folder / ".env").write_text(f"HTTP_PROXY={proxy}\n", "utf-8")  # and no key
    assert it.run(it.command()).status == 1
    assert [title for title, _ in it.heard] == ["duckdb-systemd failed"]


def test_sync_is_found_through_a_link_and_names_a_folder_that_is_not_set_up(
    project: Callable[[str], ProjectCopy],
) -> None:
    it = project("duckdb-none")
    it.folder.with_name("a link").symlink_to(it.folder / "sync")

    assert last_two(it.run("'../a link'", LOADS="done").output).startswith("1,040 jobs loaded, ")
    (it.folder / ".venv/folder").write_text("/elsewhere\n", "utf-8")
    ended = it.run("'../a link'")
    says = f"This project is not set up in this folder: run '{it.folder}/setup'.\n"
    assert (ended.status, ended.output) == (1, says)


FAILS = "#!/bin/sh\nexit 2\n"


def test_setup_names_what_stops_the_installation(
    project: Callable[[str], ProjectCopy], tmp_path: Path
) -> None:
    it = project("duckdb-none")
    uv = it.folder / "bin/uv"
    then = f"Then run: {it.folder}/setup"

    ended = it.run("./setup", UV="missing-uv")
    assert ended.output == f"\nuv is missing: pip install uv\n{then}\n"
    uv.write_text(FAILS, "utf-8")
    uv.chmod(0o755)
    assert "and the lines above say why" in last_two(it.run("./setup").output)
    (tmp_path / "file").write_text("", "utf-8")
    ended = it.run("./setup", HOME=str(tmp_path / "file"), UV_CACHE_DIR="", XDG_CACHE_HOME="")
    assert f"The home folder {tmp_path}/file cannot be written: set HOME, or " in ended.output
    script = it.folder / "setup"
    script.write_text(script.read_text("utf-8").replace("/template/p", "/gone/p"), "utf-8")
    script.write_text(script.read_text("utf-8").replace("/template'", "/gone'"), "utf-8")
    script.write_text(script.read_text("utf-8").replace("/template ", "/gone "), "utf-8")
    ended = it.run("./setup")
    assert f"{it.made.parent}/gone is gone: clone it there again.\n{then}\n" in ended.output

    it = project("postgres-github")
    (it.folder / "bin/uv").write_text(FAILS, "utf-8")
    (it.folder / "bin/uv").chmod(0o755)
    ended = it.run("./setup")
    assert (
        "\ngit cannot read file:///nowhere, which the tap comes from. For another" in ended.output
    )
    # Not root, in a folder of somebody else: the folder is not given away.
    for name, text in ("id", '#!/bin/sh\n[ "$1" = -un ] && echo me || echo 1234\n'), ("uv", FAILS):
        (it.folder / "bin" / name).write_text(text, "utf-8")
        (it.folder / "bin" / name).chmod(0o755)
    ended = it.run("./setup")
    assert f"This project belongs to {it.folder.owner()}: run this as that user" in ended.output
    assert "chown" not in ended.output


# What copier shows of a text on a terminal of 80 columns.
COLUMNS = 76


def test_no_text_of_the_questions_is_cut_by_a_terminal() -> None:
    questions = yaml.safe_load((REPOSITORY / "pipeline" / "questions.yml").read_text("utf-8"))
    texts = []
    for question in (it for name, it in questions.items() if not name.startswith("_")):
        for text in (question.get("help", ""), question.get("validator", "")):
            texts += re.split(r"{%.*?%}|{{.*?}}", " ".join(text.split()))
            texts += re.findall(r"(?:: |{{ |else )(['\"])(.*?)\1", " ".join(text.split()))
        if str(question.get("when")) == "False" and "{" not in question["default"]:
            texts += [question["default"]] if question["default"][0] != "^" else []
    found = [it if isinstance(it, str) else it[1] for it in texts]

    assert len(found) > 50
    assert [it for it in found if len(it.strip()) > COLUMNS] == []


def assert_holds(
    target: Target, folder: Path, database: str, sandbox: Sandbox, analytics: str = "analytics"
) -> None:
    """Compare every row of the raw tables, and the titles in the final ones."""
    store = target.store(folder, database)
    assert isinstance(store, Database)
    target.assert_holds(store, published(sandbox))
    open_jobs = store.fetch(f"select id, job_title from {analytics}.open_jobs")  # noqa: S608
    titles = {row["id"]: row["job_title"] for row in open_jobs}
    assert titles == {job["id"]: job["jobTitle"].strip() for job in published(sandbox)}


@pytest.mark.xdist_group("clone")  # beside the others
def test_duckdb_from_a_clone_with_a_second_try_and_a_move(source: Path, tmp_path: Path) -> None:
    """The state moves along; a run that is incomplete is built too."""
    project, clone = tmp_path / "my-pipeline", source.name
    with demo(5) as (sandbox, settings):
        answers = {"base_url": settings["base_url"], "schedule": "cron"}
        first = copier("copy", clone, project, where=source.parent, **answers, api_key="pj_wrong")
        failed, _, then = first.rstrip().splitlines()[-3:]
        assert failed.startswith(
            "The test failed: Nothing more is loaded until you act. The API refused the key"
        )
        assert then == f"Then run: {project}/setup"
        # A second answer reaches no file that is there.
        again = copier("copy", clone, project, where=source.parent, **answers, api_key=sandbox.key)
        assert f"The key is in {project}/.env, which setup and the template leave as it is" in again
        assert sandbox.key not in again
        env = project / ".env"
        assert stat.filemode(env.stat().st_mode) == "-rw-------"
        env.write_text(env.read_text("utf-8").replace("pj_wrong", sandbox.key), "utf-8")
        made = run(project / "setup", folder=tmp_path).succeeded().output
        works, then = last_two(made).splitlines()
        assert works.startswith("The key works: 5 published jobs")
        assert then.endswith(f"To load now: {project}/sync")

        ended = run(project / "sync", folder=tmp_path).succeeded()
        assert last_two(ended.output) == f"5 jobs loaded, tables built.\n{ASK}"
        moved = project.rename(tmp_path / "moved pipeline")
        ended = run(moved / "sync", folder=tmp_path)
        says = f"This project is not set up in this folder: run '{moved}/setup'.\n"
        assert (ended.status, ended.output) == (1, says)
        assert f"folder='{moved}'" in run(moved / "setup", folder=tmp_path).succeeded().output
        packages = moved / "transform/packages.yml"  # as of a clone before it had pipeline/
        mine = packages.read_text("utf-8") + "  # mine\n"
        packages.write_text(mine.replace("/pipeline/", "/"), "utf-8")
        commit(moved, "moved")
        copier("update", where=moved, folder=str(moved))
        assert packages.read_text("utf-8") == mine

        assert f"'{moved}/sync' --scheduled" in (moved / "schedule/crontab").read_text("utf-8")
        sandbox.publish(make_jobs(6)[-1])
        refused = published(sandbox)[0]["publicId"]
        sandbox.fail_next("http_400", times=None, path=f"/{refused}")
        sandbox.requests.clear()
        ended = run(moved / "sync", folder=tmp_path)
        assert last_two(ended.output).startswith("The load failed: The sync is incomplete. ")
        # The state came along: of each job the known detail, and twice the one that is refused.
        assert_holds(DUCKDB, moved / "output", "", sandbox)


@pytest.mark.xdist_group("update")
def test_postgresql_with_its_state_on_s3_two_organisations_and_an_update(
    source: Path, tmp_path: Path, database: str
) -> None:
    """An update keeps what the user has changed, and the next run what was loaded."""
    project = tmp_path / "my-pipeline"
    target = meltanolabs("hard", "my_pipeline")
    answers = {"warehouse": "postgres", "credentials": psycopg_url(database), "schedule": "github"}
    answers |= {"source": source.as_uri(), "state": "s3", "state_url": f"s3://{BUCKET}/of-runs"}
    with demo(5) as (sandbox, tap), moto(tmp_path) as address:
        s3 = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
        s3 |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": address}
        given = answers | {"api_key": sandbox.key, "base_url": tap["base_url"]}
        copier("copy", source, project, where=tmp_path, **given)
        output = run(project / "sync", folder=tmp_path, **s3).succeeded().output
        # One line says how the build ended, and none what it does.
        assert output.count("public_jobs: ") == 1
        assert "OK created" not in output
        assert "unit_test" not in output
        assert_holds(target, project, database, sandbox, "my_pipeline_analytics")

        # Another organisation in the same database takes nothing away.
        with demo(3) as (others, theirs):
            given = answers | {"api_key": others.key, "base_url": theirs["base_url"]}
            other = tmp_path / "globex"
            copier("copy", source, other, where=tmp_path, **given | {"schedule": "none"})
            run(other / "sync", folder=tmp_path).succeeded()
            assert_holds(meltanolabs("hard", "globex"), other, database, others, "globex_analytics")
        assert_holds(target, project, database, sandbox, "my_pipeline_analytics")

        settings = project / "meltano.yml"
        settings.write_text(settings.read_text("utf-8").replace("refresh: all", "refresh: changed"))
        script = project / "sync"
        script.write_text(script.read_text("utf-8").replace("#!/bin/sh", "#!/bin/sh -u"))
        (project / "run.log").write_text("a leftover", "utf-8")
        commit(project, "before")
        newer = source / "pipeline/template/sync"
        newer.write_text(newer.read_text("utf-8").replace("#!/bin/sh", "#!/usr/bin/env sh"))
        commit(source, "v99.2")
        updated = copier("update", where=project)
        assert "changed the same lines of sync: yours are kept" in updated
        assert script.read_text("utf-8").startswith("#!/bin/sh -u\n")
        assert (project / "sync.new").read_text("utf-8").startswith("#!/usr/bin/env sh\n")
        assert "_commit: v99.2" in (project / ".copier-answers.yml").read_text("utf-8")
        assert "refresh: changed" in settings.read_text("utf-8")
        assert f"KEY={sandbox.key}\n" in (project / ".env").read_text("utf-8")

        (project / ".meltano/meltano.db").unlink()  # as on a new machine
        sandbox.requests.clear()
        run(project / "sync", folder=tmp_path, **s3).succeeded()
        assert_holds(target, project, database, sandbox, "my_pipeline_analytics")
        assert len(sandbox.requests) == 1  # the list: state and `changed` have outlived the update
