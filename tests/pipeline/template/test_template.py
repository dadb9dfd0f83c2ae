"""Projects of the template, which copier makes of the last commit in an environment of its own."""

import json
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values
from e2e.pipeline import REPOSITORY, definition, environment, hearing, installed, program, run
from e2e.scenario import published
from e2e.stores import Database
from e2e.targets import DUCKDB, Target, meltanolabs, psycopg_url
from emulators.engines import BUCKET, moto
from harness import demo
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.state import Sandbox

CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("cases.yml").read_text("utf-8"))
DRIVER = "postgresql+psycopg://"
COPIER = "copier~=9.14"
ELSEWHERE = ("github", "kubernetes")
PROJECTS: dict[str, dict[str, Any]] = {
    f"{warehouse}-{schedule}": CASES["secrets"]
    | {"warehouse": warehouse, "credentials": next(iter(secrets.values()), "")}
    | {"schedule": schedule, "webhooks": schedule in ("cron", "systemd")}
    | {"alert": "none" if warehouse == "bigquery" or schedule == "none" else "message"}
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
    wrong = (it for it, works in CASES["addresses"].items() if not works)
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


def test_an_update_has_no_answer_that_replaces_a_secret() -> None:
    """Copier saves no secrets: an update takes their defaults, and an empty one keeps the line."""
    questions = yaml.safe_load((REPOSITORY / "pipeline" / "questions.yml").read_text("utf-8"))
    secrets = {name: it["default"] for name, it in questions.items() if "secret" in it}
    assert secrets.keys() >= {"api_key", "credentials", "changes_url", "ping_url"}
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
    if schedule in ("cron", "systemd"):
        secrets["TAP_PUBLIC_JOBS_CHANGES_URL"] = given["changes_url"]
    lines = (folder / ".env.new").read_text("utf-8").splitlines()
    assert dotenv_values(folder / ".env.new") == secrets
    # As Docker and kubectl read it.
    assert dict(line.split("=", 1) for line in lines if not line.startswith("#")) == secrets
    required = dotenv_values(folder / ".env.example")
    assert required == dict.fromkeys(secrets.keys() - {"PING_URL"}, "")
    others = " ".join((folder / it).read_text("utf-8") for it in found if it != ".env.new")
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

    plugins = read("plugins.yml")["plugins"]
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
    assert read("schedule/*.py", *airflow) == "[<Task(BashOperator): sync>]\n" * 4


# Stand-ins for the programs of a project. The nth run of Meltano writes the log of the nth name in
# LOADS, and fails if its last line is an error. The command of dbt that FAILS names fails; or, if
# that is `first build`, the first build.
PROGRAMS = {
    ".venv/bin/meltano": """#!/bin/sh
flock --nonblock .lock true
[ "$?$(umask)" = 10077 ] || echo "not locked" >> calls
case "$2" in
run) echo "$TAP_PUBLIC_JOBS_DETAIL_REFRESH run" >> calls ;;
invoke) echo "invoke $4" >> calls ;;
esac
[ "$FAILS $(grep -c build calls)" != "first build 1" ] || FAILS=build
log="bin/$(echo $LOADS | cut -d' ' -f"$(grep -c run calls)").log"
case "$2 $4" in
run*) [ "$LOADS" != hangs ] || bin/tap-public-jobs
    cat "$log"; ! tail -n 1 "$log" | grep -q '"level": "error"' ;;
*:$FAILS) echo "04:00:00    Database Error in model open_jobs"; echo "  no space"; exit 2 ;;
state*) echo '{"singer_state": {}}' ;;
esac
""",
    "bin/tap-public-jobs": """#!/bin/sh
trap 'echo the tap stops; exit 143' TERM
mkfifo .pipe || exit
echo hanging
while read -r word < .pipe; do [ "$word" != end ] || exit 0; done
""",
    "bin/sleep": """#!/bin/sh
echo "sleep $*" >> calls
[ -z "$WAITS" ] || { echo waiting; exec /bin/sleep 600; }
""",
    ".meltano/extractors/tap-public-jobs/venv/bin/public-jobs-webhook": """#!/bin/sh
[ "$2$3" = --state.meltano/state.json ] && exit $NEWS
exit 9
""",
} | {
    f"bin/{load}.log": "".join(f"{json.dumps({'level': 'info'} | it)}\n" for it in lines)
    for load, lines in CASES["logs"].items()
}
Heard = list[tuple[str, Any]]


class Project:
    """A copy of a project, with other programs, and with addresses that listen."""

    def __init__(self, made: Path, tmp_path: Path, heard: Heard, address: str) -> None:
        self.made, self.heard = made, heard
        self.folder = folder = shutil.copytree(made, tmp_path / "my projects" / made.name)
        self.variables = {
            "HOSTNAME": "pod-1",
            "PATH": f"{folder}/bin:/usr/bin:/bin",
            "PING_URL": f"http://{address}/ping",
            "ALERT_URL": f"json://{address}/secret",
            "FAILS": "none",
            "WAITS": "",
        }
        python = installed("meltano~=4.4 apprise~=2.2") / "python"
        programs = PROGRAMS | {".venv/bin/python": f'#!/bin/sh\nexec {python} "$@"\n'}
        for name, text in programs.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
            (folder / name).chmod(0o755)
        shutil.copy(folder / ".env.new", folder / ".env")
        (folder / ".venv/folder").write_text(f"{folder}\n", "utf-8")
        (folder / "output").mkdir()
        (folder / "output/warehouse.duckdb").write_text("rows", "utf-8")

    def command(self) -> str:
        """What the schedule runs."""
        schedule = self.folder.name.partition("-")[2]
        text = (self.folder / CASES["schedules"][schedule][0]).read_text("utf-8")
        (found,) = re.finditer(f"^{CASES['commands'][schedule]}$", text, re.MULTILINE)
        return " ".join(found.groups()).replace(str(self.made), str(self.folder))

    def start(self, command: str, **variables: str) -> subprocess.Popen[str]:
        (self.folder / "calls").write_text("", "utf-8")
        self.heard.clear()
        return subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}" if command.startswith("./") else command],
            cwd=self.folder,
            env=environment(**self.variables) | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command: str, **variables: str) -> tuple[int, list[str], str]:
        """Its status, what was called, and its last two lines."""
        with self.start(command, **variables) as process:
            output, self.errors = process.communicate()
        assert "secret" not in output + self.errors
        lines = (self.folder / "calls").read_text("utf-8").splitlines()
        return process.returncode, [" ".join(it.split()) for it in lines], last_two(output)


def last_two(output: str) -> str:
    return "\n".join(output.rstrip().splitlines()[-2:])


def await_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout
    assert any(text in line for line in process.stdout)


@pytest.fixture
def project(made: Made, tmp_path: Path) -> Iterator[Callable[[str], Project]]:
    heard: Heard = []

    def take(path: str, body: bytes) -> None:
        sent = json.loads(body) if body else {"title": "GET", "message": path}
        heard.append((sent["title"], sent["message"]))

    with hearing(take) as address:
        yield lambda name: Project(made[0] / name, tmp_path, heard, address)


LOAD, BUILD = "run", "invoke dbt-duckdb:build"
ASK = "Ask them: uvx --from duckdb-cli duckdb -readonly output/warehouse-copy.duckdb"
WAIT = "sleep 720"
PING: Heard = [("GET", "/ping")]
REFUSED = "The load failed: The API refused the key."
NO_BUILD = "The build failed: Database Error in model open_jobs no space"


@pytest.mark.parametrize(
    ("load", "fails", "status", "builds", "says"), CASES["syncs"].values(), ids=CASES["syncs"]
)
def test_sync_builds_what_was_loaded_and_ends_with_what_happened(
    project: Callable[[str], Project], load: str, fails: str, status: int, builds: bool, says: str
) -> None:
    it = project("duckdb-none")
    it.folder.with_name("a link").symlink_to(it.folder / "sync")

    ended, called, said = it.run("'../a link'", LOADS=load, FAILS=fails)

    assert (ended, called) == (status, [LOAD, BUILD] if builds else [LOAD])
    assert said.startswith(says)
    assert ("Correct it" in said) is (status == 1 and load not in ("incomplete", "missing"))
    assert it.heard == []  # somebody is looking
    copied = (it.folder / "output/warehouse-copy.duckdb").exists()
    assert copied == (builds and fails == "none")


SCHEDULED = ["duckdb-systemd", "duckdb-airflow", "postgres-github", "postgres-kubernetes"]


@pytest.mark.parametrize("name", ["duckdb-cron", "postgres-cron", *SCHEDULED])
def test_an_alert_of_each_schedule_is_a_failed_retry(
    project: Callable[[str], Project], name: str
) -> None:
    """What cron gets on stderr it mails, which is nothing if alerts are messages."""
    it = project(name)
    warehouse, schedule = name.split("-")
    mode = "changed " if schedule in ("cron", "systemd") else ""  # those with webhooks
    build, fresh = (f"invoke dbt-{warehouse}:{command}" for command in ("build", "freshness"))
    load = f"{mode}run"

    def run(loads: str, fails: str = "none") -> tuple[int, list[str]]:
        return it.run(it.command(), LOADS=loads, FAILS=fails)[:2]

    assert run("done") == (0, [load, build, fresh])
    assert it.heard == PING
    # While nothing is published, no row is new, and that is no reason for an alert.
    assert run("empty", "freshness") == (0, [load, build])
    assert run("empty", "first build") == (0, [load, build, WAIT, build])
    assert run("incomplete done") == (0, [load, build, WAIT, load, build, fresh])
    assert (it.heard, it.errors) == (PING, "")
    # A load that was complete is not repeated for the build.
    for loads, fails, calls, says in (
        ("refused refused", "none", [load, WAIT, load], REFUSED),
        ("done", "build", [load, build, WAIT, build], NO_BUILD),
        ("done", "freshness", [load, build, fresh, WAIT, build, fresh], "The tables are old: "),
    ):
        assert run(loads, fails) == (1, calls)
        ((title, message),) = it.heard
        reason, where = message.splitlines()
        assert title == f"{name} failed"
        assert reason.startswith(says)
        assert where.startswith(f"Host: {socket.gethostname()}, project: {name}. Log: ")
        assert CASES["log_of"][schedule] in where
        assert it.errors == ("" if name == "postgres-cron" else f"{message}\n")
    assert not mode or (it.folder / ".meltano/state.json").exists()
    # Nobody listens any more.
    nobody = "127.0.0.1:1/secret"
    it.variables |= {"ALERT_URL": f"json://{nobody}", "PING_URL": f"http://{nobody}"}
    log = it.folder / "output/sync.log"
    for loads, status, says in (
        ("refused refused", 1, "No alert was sent. "),
        ("done", 0, "PING_URL was not reached: "),
    ):
        assert run(loads)[0] == status
        written = log.read_text("utf-8") if name == "postgres-cron" else it.errors
        assert says in written
        assert "secret" not in written


def test_a_project_without_messages_says_how_to_get_them(
    project: Callable[[str], Project],
) -> None:
    it = project("duckdb-none")
    (it.folder / "apprise.py").write_text("raise ModuleNotFoundError('apprise')", "utf-8")

    assert it.run("./sync --check")[0] == 1
    assert "--data alert=message" in it.errors
    assert it.run("./sync --scheduled", LOADS="refused refused")[0] == 1
    reason, _, sent = it.errors.splitlines()
    assert reason == REFUSED
    assert sent.startswith("No alert was sent. This project is not set up to send alerts to ALERT_")


def test_alerts_and_pings_go_through_the_proxy_that_env_names(
    project: Callable[[str], Project],
) -> None:
    it = project("duckdb-systemd")
    proxy = it.variables["PING_URL"].removesuffix("/ping")
    with (it.folder / ".env").open("a", encoding="utf-8") as file:
        file.write(f"HTTP_PROXY={proxy}\n")
    it.variables |= {
        "PING_URL": "http://ping.invalid/up",
        "ALERT_URL": "json://alert.invalid/secret",
    }

    assert it.run(it.command(), LOADS="done")[0] == 0
    assert it.heard == [("GET", "http://ping.invalid/up")]
    assert it.run(it.command(), LOADS="refused refused")[0] == 1
    assert [title for title, _ in it.heard] == ["duckdb-systemd failed"]
    (it.folder / ".env").write_text(f"HTTP_PROXY={proxy}\n", "utf-8")  # and no key
    assert it.run(it.command())[0] == 1
    assert [title for title, _ in it.heard] == ["duckdb-systemd failed"]


MINUTE = 60


@pytest.mark.parametrize("case", CASES["frequent"].values(), ids=CASES["frequent"])
def test_a_frequent_schedule_alerts_once_it_has_failed_for_twelve_minutes(
    project: Callable[[str], Project], case: dict[str, Any]
) -> None:
    """In minutes: since when the runs fail, and when the last alert was, before and after."""
    it, now = project("duckdb-cron"), time.time()

    def times(minutes_ago: list[int | None]) -> list[float]:
        return [now - MINUTE * age if age is not None else 0 for age in minutes_ago]

    failing = it.folder / ".meltano/failing.json"
    if case["before"]:
        failing.write_text(json.dumps(times(case["before"])), "utf-8")

    status, calls, _ = it.run("./sync --if-news", LOADS=case["load"], NEWS=str(case["news"]))

    assert status == (case["load"] != "done")
    assert calls.count("notified run") == case["runs"]
    assert WAIT not in calls
    assert len(it.heard) == case["alerts"]
    assert failing.exists() == bool(case["after"])
    if case["after"]:
        written = json.loads(failing.read_text("utf-8"))
        assert written == pytest.approx(times(case["after"]), abs=MINUTE / 2)


def test_a_frequent_run_reports_that_the_tap_is_not_installed(
    project: Callable[[str], Project],
) -> None:
    it = project("duckdb-cron")
    shutil.rmtree(it.folder / ".meltano/extractors")

    status, calls, said = it.run("./sync --if-news", LOADS="missing")

    assert (status, calls) == (1, ["notified run"])
    assert said.startswith("The load failed: Cannot start plugin tap.\n")
    assert said.endswith(" Run ./setup, and then ./sync again.")


@pytest.mark.parametrize(
    ("sent", "loads", "status", "alerts"),
    [
        (signal.SIGTERM, "hangs", 143, []),
        (signal.SIGINT, "hangs", 130, []),
        (signal.SIGTERM, "refused", 143, []),  # while it waits for the retry
        (signal.SIGALRM, "hangs", 1, ["The run did not end within 345 minutes."]),
    ],
)
def test_a_signal_stops_the_tap_and_nothing_is_built(
    project: Callable[[str], Project], sent: int, loads: str, status: int, alerts: list[str]
) -> None:
    it = project("duckdb-systemd")
    with it.start("./sync --scheduled", LOADS=loads, WAITS="yes") as process:
        await_line(process, "hanging" if loads == "hangs" else "waiting")
        if sent == signal.SIGTERM and loads == "hangs":  # as README.md says
            run("pkill", "-TERM", "-f", f"{it.folder}/sync.py", folder=it.folder).succeeded()
        else:
            process.send_signal(sent)
        output, _ = process.communicate()

    assert process.returncode == status
    assert ("the tap stops" in output) == (loads == "hangs")
    assert "dbt-duckdb" not in (it.folder / "calls").read_text("utf-8")
    assert [text.partition("\n")[0] for _, text in it.heard] == alerts


def test_a_frequent_run_leaves_a_running_one_alone_and_others_wait_even_if_its_sync_was_killed(
    project: Callable[[str], Project],
) -> None:
    it = project("duckdb-systemd")
    with it.start("./sync", LOADS="hangs") as process:
        await_line(process, "hanging")
        process.kill()
        assert it.run("./sync --if-news", LOADS="done", NEWS="0") == (0, [], "")
        with it.start("./sync", LOADS="done") as waiting:
            assert waiting.stdout
            assert waiting.stdout.readline() == "Waiting for the run that is still going.\n"
            (it.folder / ".pipe").write_text("end\n", "utf-8")
            assert "1,040 jobs loaded" in waiting.communicate()[0]


def test_sync_fills_a_database_anew_and_names_what_else_is_gone(
    project: Callable[[str], Project],
) -> None:
    """With all details, until a load is complete: the state knows those of the lost database."""
    it = project("duckdb-none")
    shutil.rmtree(it.folder / "output")
    status, calls, said = it.run("./sync", LOADS="incomplete")
    assert (status, calls) == (1, [f"all {LOAD}", BUILD])
    (it.folder / "output/warehouse.duckdb").write_text("some rows", "utf-8")
    assert it.run("./sync", LOADS="refused")[:2] == (1, [f"all {LOAD}"])
    assert it.run("./sync", LOADS="done")[:2] == (0, [f"all {LOAD}", BUILD])
    assert it.run("./sync", LOADS="done")[:2] == (0, [LOAD, BUILD])

    (it.folder / "output/warehouse.duckdb").unlink()
    said = it.run("./sync", LOADS="done")[2]  # the stand-in makes no database
    copy, _ = said.splitlines()
    assert copy == "output/warehouse-copy.duckdb could not be written: No such file or directory"

    for script in (it.folder / "sync", it.folder / "setup"):
        script.write_text(script.read_text("utf-8").replace("/template'", "/gone'"), "utf-8")
    says = f"The tap's clone {it.made.parent}/gone is gone: clone it there again.\n"
    assert it.run("./sync")[:2] == (1, [])
    assert it.errors == says
    (it.folder / ".env.new").unlink()
    assert it.run("./setup", UV="true")[0] == 1
    assert it.errors.endswith(f"\n{says}Then run: {it.folder}/setup\n")


def test_sync_names_what_has_to_be_done_first(project: Callable[[str], Project]) -> None:
    it = project("duckdb-none")
    (it.folder / ".env").write_text("TAP_PUBLIC_JOBS_API_KEY=x\n", "utf-16")
    assert it.run("./sync --scheduled")[:2] == (1, [])
    says = f"{it.folder}/.env is not in UTF-8: save it in UTF-8."
    assert it.errors.partition("\n")[0] == it.heard[0][1].partition("\n")[0] == says
    # A frequent schedule, whose stderr cron mails, alerts only once it has lasted.
    failing = it.folder / ".meltano/failing.json"
    for since, alerts in (0, 0), (time.time() - 13 * MINUTE, 1), (None, 0):
        if since is not None:
            failing.write_text(json.dumps([since or time.time(), 0]), "utf-8")
        assert it.run("./sync --if-news") == (1, [], says)
        assert (len(it.heard), bool(it.errors)) == (alerts, bool(alerts))
    assert it.run("./setup", UV="missing-uv")[:2] == (1, [])
    assert it.errors.startswith("\n.env is not in UTF-8: save it in UTF-8.\nThen run: ")
    (it.folder / ".env").write_text("TAP_PUBLIC_JOBS_API_KEY=\n", "utf-8")
    assert it.run("./sync")[:2] == (1, [])
    assert it.errors == f"Write TAP_PUBLIC_JOBS_API_KEY into {it.folder}/.env.\n"
    assert it.run("./sync", TAP_PUBLIC_JOBS_API_KEY_FILE="/key", LOADS="done")[0] == 0


# In place of the module of Python, because root may open any file.
NOT_ITS_OWN = """
LOCK_EX = LOCK_NB = 0
def flock(*_): raise PermissionError(13, "Permission denied", ".lock")
"""


def test_files_of_another_user_are_an_alert_of_a_schedule(
    project: Callable[[str], Project],
) -> None:
    """As after a run by hand as root."""
    it = project("duckdb-cron")
    (it.folder / "fcntl.py").write_text(NOT_ITS_OWN, "utf-8")

    for options, alerts in ("", 0), (" --scheduled", 1), (" --if-news", 0):
        assert it.run(f"./sync{options}")[0] == 1
        assert [text.partition(":")[0] for _, text in it.heard] == (
            [".lock cannot be used"] * alerts
        )
        assert ("sudo chown -R" in it.errors) is (options != " --if-news")


def break_env(it: Project) -> None:
    (it.folder / ".env").unlink()
    (it.folder / ".env").mkdir()


def fill_the_disk(it: Project) -> None:
    (it.folder / ".meltano/state.new").symlink_to("/dev/full")


def remove_meltano(it: Project) -> None:
    (it.folder / ".venv/bin/meltano").unlink()


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (break_env, ".env cannot be read by "),
        (fill_the_disk, "No space left on device"),
        (remove_meltano, "No such file or directory (.venv/bin/meltano)"),
    ],
)
def test_whatever_breaks_a_schedule_is_an_alert_and_no_traceback(
    project: Callable[[str], Project], harm: Callable[[Project], None], says: str
) -> None:
    """And an alert of a frequent one once it has failed for twelve minutes, if odd times say so."""
    it = project("duckdb-cron")
    harm(it)
    failing = it.folder / ".meltano/failing.json"

    for options, times in (" --scheduled", '{"a": 1}'), (" --if-news", f"[1, {time.time() + 1e6}]"):
        failing.write_text(times, "utf-8")
        status, _, said = it.run(f"./sync{options}", LOADS="done", NEWS="0")
        assert status == 1
        assert "Traceback" not in said + it.errors
        messages = [text for _, text in it.heard]
        assert [says in text for text in messages] == [True] * (options == " --scheduled")
    failing.write_text("[1, 0]", "utf-8")
    assert it.run("./sync --if-news", LOADS="done", NEWS="0")[0] == 1
    assert [says in text for _, text in it.heard] == [True]


def test_a_command_for_news_that_breaks_is_no_absence_of_news(
    project: Callable[[str], Project],
) -> None:
    it = project("duckdb-cron")
    news = it.folder / ".meltano/extractors/tap-public-jobs/venv/bin/public-jobs-webhook"

    assert it.run("./sync --if-news", LOADS="done", NEWS="1")[1] == []
    news.write_text("#!/bin/sh\necho ModuleNotFoundError >&2\nexit 1\n", "utf-8")
    assert "notified run" in it.run("./sync --if-news", LOADS="done")[1]


def test_an_address_for_pings_that_cannot_be_is_not_shown(
    project: Callable[[str], Project],
) -> None:
    it = project("duckdb-cron")
    it.variables["PING_URL"] = "http://127.0.0.1:1/secret x"

    assert it.run("./sync --scheduled", LOADS="done")[0] == 0  # `run` looks for the secret


@pytest.mark.parametrize(("before", "answers", "after", "says"), CASES["tries"])
def test_a_second_try_writes_the_answers_that_were_given(
    made: Made, tmp_path: Path, before: str | None, answers: str, after: list[str], says: list[str]
) -> None:
    """Without uv, so that nothing is installed."""
    shutil.copy(made[0] / "duckdb-none/setup", tmp_path)
    (tmp_path / ".env.new").write_text(f"{answers}\n", "utf-8")
    if before:
        (tmp_path / ".env").write_text(before, "utf-8")

    ended = run(tmp_path / "setup", folder=tmp_path, UV="missing-uv")

    assert (tmp_path / ".env").read_text("utf-8").splitlines() == after
    assert stat.filemode((tmp_path / ".env").stat().st_mode) == "-rw-------"
    assert not (tmp_path / ".env.new").exists()
    *lines, _, missing, then = ended.output.splitlines()
    assert [said in line for said, line in zip(says, lines, strict=True)] == [True] * len(says)
    assert (ended.status, missing) == (1, "uv is missing: pip install uv")
    assert then == f"Then run: {tmp_path}/setup"


@pytest.mark.parametrize(("address", "works"), CASES["addresses"].items())
def test_questions_setup_and_sync_name_an_address_of_a_database_that_cannot_work(
    made: Made, project: Callable[[str], Project], address: str, works: bool
) -> None:
    """Without uv, in an environment that is there."""
    assert ("@ is %40" in made[1].get(address, "")) is not works
    it = project("postgres-none")
    (it.folder / ".env.new").unlink()
    url = f"TARGET_POSTGRES_SQLALCHEMY_URL={DRIVER}{address}"
    (it.folder / ".env").write_text(f"TAP_PUBLIC_JOBS_API_KEY=x\n{url}\n", "utf-8")

    status, _, said = it.run("./setup", UV="true")

    assert (status == 0) is works
    assert said.endswith(f"To load now: {it.folder}/sync") is works
    assert ("@ is %40" in it.errors) is not works
    # The same line and no other, so no part of the password; a schedule alerts with it.
    for options in "", " --scheduled":
        status, called, _ = it.run(f"./sync{options}", LOADS="done")
        assert (status == 0, "run" in " ".join(called)) == (works, works)
        assert ("@ is %40" in it.errors and "me:" not in it.errors) is not works
    assert ("@ is %40" in str(it.heard[-1])) is not works


def assert_holds(
    target: Target, folder: Path, database: str, sandbox: Sandbox, analytics: str = "analytics"
) -> None:
    """Compare every row of the raw tables, and the titles in the final ones."""
    store = target.store(folder, database)
    assert isinstance(store, Database)
    target.assert_holds(store, published(sandbox))
    open_jobs = store.fetch(f"select id, job_title from {analytics}.open_jobs")  # noqa: S608
    titles = {row["id"]: row["job_title"] for row in open_jobs}
    assert titles == {job["id"]: job["jobTitle"] for job in published(sandbox)}


@pytest.mark.xdist_group("clone")  # beside the others
def test_duckdb_from_a_clone_with_a_second_try_and_a_move(source: Path, tmp_path: Path) -> None:
    """The state moves along; a run that is incomplete is built too."""
    project, clone = tmp_path / "my-pipeline", source.name
    with demo(5) as (sandbox, settings):
        answers = {"base_url": settings["base_url"], "schedule": "cron"}
        first = copier("copy", clone, project, where=source.parent, **answers, api_key="pj_wrong")
        failed, then = last_two(first).splitlines()
        assert failed.startswith(
            "The test failed: Nothing more is loaded until you act. The API refused the key"
        )
        assert then == f"Then run: {project}/setup"
        made = copier("copy", clone, project, where=source.parent, **answers, api_key=sandbox.key)
        works, then = last_two(made).splitlines()
        assert works.startswith("The key works: 5 published jobs")
        assert then.endswith(f"To load now: {project}/sync")
        assert sandbox.key not in made

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
        newer = source / "pipeline/template/sync.jinja"
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
