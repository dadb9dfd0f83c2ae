"""Projects of the template, which copier makes of the last commit in an environment of its own."""

import json
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values
from e2e.pipeline import (
    COPIER,
    REPOSITORY,
    Finished,
    commit,
    copier,
    definition,
    environment,
    hearing,
    installed,
    program,
    run,
)
from public_jobs_sandbox.meltano import uv_command
from stand_ins import CASES as PIPELINE_CASES
from stand_ins import DRIVER, PROGRAMS

CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("cases.yml").read_text("utf-8"))
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
    optional = {"ALERT_URL", "PING_URL", "DIGEST_URL"}
    assert required == dict.fromkeys(secrets.keys() - optional, "")
    others = " ".join((folder / it).read_text("utf-8") for it in found if it != ".env")
    assert [it for it in secrets.values() if it in others] == []
    if schedule == "github":
        passed = re.findall(
            r"^ +(\w+): \${{ secrets\.(\w+) \|\| env\.(\w+) }}$", others, re.MULTILINE
        )
        assert passed == [(it, it, it) for it, _, _ in passed]
        assert {it for it, _, _ in passed} == secrets.keys()
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

    # Meltano reads it by the locale, and a locale of one byte stops at other characters.
    assert (folder / "plugins.yml").read_bytes().isascii()
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
    (folder / ".venv/bin/python").symlink_to(python)
    (folder / "output/warehouse.duckdb").write_text("rows", "utf-8")
    return {
        "PATH": f"{folder}/bin:/usr/bin:/bin",
        "UV": "",  # `uv run` sets it
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


# Its output is the log, or goes to a file.
@pytest.mark.parametrize("name", ["duckdb-systemd", "postgres-cron"])
def test_a_schedule_logs_an_address_that_nobody_listens_at(
    project: Callable[[str], ProjectCopy], name: str
) -> None:
    it = project(name)
    log = it.folder / "output/sync.log"
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


def test_sync_is_found_through_a_link_and_says_what_setup_has_to_repair(
    project: Callable[[str], ProjectCopy],
) -> None:
    it = project("duckdb-none")
    it.folder.with_name("a link").symlink_to(it.folder / "sync")

    assert last_two(it.run("'../a link'", LOADS="done").output).startswith("1,040 jobs loaded, ")

    def says(**variables: str) -> str:
        ended = it.run("'../a link'", **variables)
        assert ended.status == 1
        return ended.output.replace(str(it.folder), "")

    run = "run '/setup'.\n"
    gone = "The clone that this project runs is gone, or another Python is in the place of its own"
    assert says(PYTHONPATH="") == f"{gone}: {run}"
    (it.folder / ".venv/bin/python").unlink()
    (it.folder / ".venv/bin/python").symlink_to("/gone/python")
    assert says() == f"The Python of this project is gone: {run}"
    (it.folder / ".venv/folder").write_text("/elsewhere\n", "utf-8")
    assert says() == f"This project is not set up in this folder: {run}"


def test_an_update_keeps_the_lines_of_the_user_and_takes_all_others(
    source: Path, tmp_path: Path
) -> None:
    """Without uv, so that nothing is installed."""
    folder = tmp_path / "my-pipeline"
    answers = {"base_url": "https://jobs.example.com"}
    for key in ("pj_1", "pj_2"):  # a second answer reaches no .env that is there
        copy = ("copy", source, folder, "--skip-tasks")
        copier(*copy, where=tmp_path, **answers, api_key=key).succeeded()
    run("git", "init", "--quiet", folder=folder).succeeded()
    mine = ("sync", "#!/bin/sh\n", "#!/bin/sh -u\n"), ("plugins.yml", "# Made", "# Mine. Made")
    for name, old, new in mine:
        text = (folder / name).read_text("utf-8")
        (folder / name).write_text(text.replace(old, new, 1), "utf-8")
    commit(folder, "mine")
    newer = (
        ("template/sync", "#!/bin/sh\n", "#!/usr/bin/sh\n"),
        ("template/sync", "exec ", "exec nice "),
        ("template/plugins.yml.jinja", "# Made", "# Newer"),
        ("meltano/utilities/dbt-duckdb.yml", "args: deps", "args: deps --newer"),
    )
    for name, old, new in newer:
        file = source / "pipeline" / name
        file.write_text(file.read_text("utf-8").replace(old, new, 1), "utf-8")
    commit(source, "v99.2")

    command = (installed(COPIER) / "copier", "update", "--trust", "--defaults")
    updated = run(*command, folder=folder, UV="missing-uv").succeeded().output
    assert updated.endswith(f"\nuv is missing: pip install uv\nThen run: {folder}/setup\n")
    for name, kept, taken, left in (
        ("sync", "#!/bin/sh -u\n", "\nexec nice ", "#!/usr/bin/sh\n"),
        ("plugins.yml", "# Mine. Made ", "args: deps --newer\n", "# Newer "),
    ):
        assert f"changed the same lines of {name}: yours are kept" in updated
        text = (folder / name).read_text("utf-8")
        assert text.startswith(kept)
        assert taken in text
        assert "<<<<" not in text
        assert (folder / f"{name}.new").read_text("utf-8").startswith(left)
    assert sorted(it.name for it in folder.glob("*.*") if it.suffix in {".new", ".old"}) == [
        "plugins.yml.new",
        "sync.new",
    ]
    assert "_commit: v99.2" in (folder / ".copier-answers.yml").read_text("utf-8")
    assert "API_KEY=pj_1\n" in (folder / ".env").read_text("utf-8")


@pytest.mark.parametrize("kind", ["a ZIP", "edited", "of another user"])
def test_a_clone_is_refused_from_which_no_update_could_come(
    source: Path, tmp_path: Path, kind: str
) -> None:
    clone, project = tmp_path / "tap-public-jobs", tmp_path / "my-pipeline"
    run("git", "clone", "--quiet", "--no-tags", source, clone, folder=tmp_path).succeeded()
    variables = {}
    if kind == "a ZIP":
        shutil.rmtree(clone / ".git")
    elif kind == "edited":
        (clone / "README.md").write_text("mine", "utf-8")
    else:
        variables["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"  # git's own tests set it, too
    options = ("--trust", "--defaults", "--data=base_url=https://jobs.example.com")
    command = (installed(COPIER) / "copier", "copy", *options, clone, project)

    ended = run(*command, folder=tmp_path, **variables)

    assert ended.status
    assert "Take a clone of your own, made by git, and commit or undo what you" in ended.output
    assert not project.exists()


FAILS = "#!/bin/sh\n[ $1 != --version ] || { echo uv 0.13.9; exit; }\nexit 2\n"


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
    uv.write_text(FAILS.replace("0.13.9", "0.9.16"), "utf-8")
    assert "\nuv 0.9.16 is too old for uv.toml, which needs 0.9.17 or" in it.run("./setup").output
    uv.write_text(FAILS, "utf-8")
    (tmp_path / "file").write_text("", "utf-8")
    ended = it.run("./setup", HOME=str(tmp_path / "file"), UV_CACHE_DIR="", XDG_CACHE_HOME="")
    assert f"The home folder {tmp_path}/file cannot be written: set HOME, or " in ended.output
    script = it.folder / "setup"
    script.write_text(script.read_text("utf-8").replace("/template/p", "/gone/p"), "utf-8")
    script.write_text(script.read_text("utf-8").replace("/template'", "/gone'"), "utf-8")
    script.write_text(script.read_text("utf-8").replace("/template ", "/gone "), "utf-8")
    ended = it.run("./setup")
    gone = f"{it.made.parent}/gone"
    assert f"The tap's clone {gone} is gone: clone it there again, or link to" in ended.output
    assert ended.output.endswith(f"'{gone}'\n{then}\n")

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


# What copier writes before a question or a choice, and before an error.
SIGN, ERROR, COLUMNS = 3, "Validation error for question '{}': ", 80


def test_no_text_of_the_questions_is_cut_by_a_terminal() -> None:
    questions = yaml.safe_load((REPOSITORY / "pipeline" / "questions.yml").read_text("utf-8"))
    shown: list[tuple[int, str]] = []
    for name, question in questions.items():
        if name.startswith("_"):
            continue
        error = len(ERROR.format(name))
        if question.get("when") is False:  # part of an error of `credentials`
            is_text = "{" not in question["default"] and question["default"][0] != "^"
            shown += [(len(ERROR.format("credentials")), question["default"])] if is_text else []
        choices = question.get("choices", {})
        for choice, it in choices.items():
            why = re.sub("{%.*?%}", "", it["validator"]) if isinstance(it, dict) else ""
            shown.append((SIGN, f"{choice} ({why})"))
        # Copier validates none that it asks for in a list.
        validator = "" if choices else question.get("validator", "")
        for before, source in (SIGN, question.get("help", "")), (error, validator):
            text = " ".join(source.split())
            parts = re.split(r"{%.*?%}|{{.*?}}", text)
            parts += [it for _, it in re.findall(r"(?:: |{{ |else )(['\"])(.*?)\1", text)]
            shown += [(before, it.strip()) for it in parts]

    assert len(shown) > 50
    assert [it for before, it in shown if before + len(it) > COLUMNS] == []
