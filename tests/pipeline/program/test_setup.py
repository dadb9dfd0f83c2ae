"""`setup` and `check`: the file .env, and what has to be corrected first."""

import re
import stat
import time
from pathlib import Path

import psycopg
import pytest
from public_jobs_pipeline import check
from stand_ins import CASES, DRIVER, ProjectAtWork

MINUTE = 60


EXAMPLE = "# The key\nTAP_PUBLIC_JOBS_API_KEY=\n# Why\nALERT_URL=\n# Optional\n# PING_URL=\n"


def test_env_is_written_once_and_then_setup_names_the_lines_that_it_lacks(
    project: ProjectAtWork,
) -> None:
    """Whatever it has stays as it is, spellings of others and optional lines among them."""
    project.write(".venv/bin/meltano", ANSWERS)
    project.write(".env.example", EXAMPLE)
    Path(".env").unlink()
    for name in ("ALERT_URL", "PING_URL"):
        del project.variables[name]

    assert project.run("setup", UV="true")[0] == 0
    assert Path(".env").read_text("utf-8") == EXAMPLE
    assert stat.filemode(Path(".env").stat().st_mode) == "-rw-------"
    says = f"Write TAP_PUBLIC_JOBS_API_KEY and ALERT_URL into {project.folder}/.env\n"
    assert says in project.output
    assert "add them" not in project.output

    for text, lacking in (
        ("export TAP_PUBLIC_JOBS_API_KEY = x", "# Why\nALERT_URL=\n# Optional\n# PING_URL=\n"),
        ("TAP_PUBLIC_JOBS_API_KEY_FILE=/key\nALERT_URL=json://a", "# Optional\n# PING_URL=\n"),
        ("#PING_URL=\r\nTAP_PUBLIC_JOBS_API_KEY=x\r\nALERT_URL=json://a\r\n", ""),
    ):
        Path(".env").write_bytes(text.encode())
        assert project.run("setup", UV="true")[0] == 0
        assert Path(".env").read_bytes() == text.encode()
        added = f"\n{project.folder}/.env has no place yet for these lines; add them:\n{lacking}"
        assert (added in project.output) is bool(lacking)
        assert ("add them" in project.output) is bool(lacking)


@pytest.mark.parametrize("command", ["setup", "check", "sync"])
def test_variables_of_the_environment_that_replace_the_project_are_named(
    project: ProjectAtWork, command: str
) -> None:
    """Such as those of a sandbox in the same terminal: its made-up jobs would be loaded."""
    line = "Warning: The environment sets {}, in place of this project's own settings."

    def named(**variables: str) -> list[str]:
        assert project.run(command, UV="true", LOADS="done", **variables)[0] == 0
        return [it for it in project.output.splitlines() if "The environment sets" in it]

    if command != "sync":
        project.write(".venv/bin/meltano", ANSWERS)
    assert named() == []
    assert named(TAP_PUBLIC_JOBS_API_KEY="key", PATH_OF_MINE="x") == []  # the same, and another
    both = {"TAP_PUBLIC_JOBS_BASE_URL": "http://127.0.0.1", "TAP_PUBLIC_JOBS_API_KEY": "other"}
    assert named(**both) == [line.format("TAP_PUBLIC_JOBS_API_KEY, TAP_PUBLIC_JOBS_BASE_URL")]
    assert named(TARGET_DUCKDB_FILEPATH="x") == [line.format("TARGET_DUCKDB_FILEPATH")]
    # There, all come from the environment.
    project.answer(schedule="github")
    assert named(**both) == []


def test_setup_and_check_show_the_warnings_of_the_tap(project: ProjectAtWork) -> None:
    project.write(".venv/bin/meltano", ANSWERS)
    project.write("warned", '{"event": "PAGESIZE has no effect", "level": "warning"}\n')

    for command in ("setup", "check"):
        assert project.run(command, UV="true")[0] == 0
        assert "Warning: PAGESIZE has no effect\nThe key works.\n" in project.output


@pytest.mark.parametrize("level", ["critical", "error"])
def test_check_names_why_the_tap_failed_or_could_not_start(
    project: ProjectAtWork, level: str
) -> None:
    lines = [
        f'{{"event": "The key was refused.", "level": "{level}"}}',
        '{"event": "Need help fixing this problem?", "level": "info"}',
    ]
    project.write("refused", "\n".join(lines))
    project.write(".venv/bin/meltano", "#!/bin/sh\ncat refused\nexit 1\n")

    assert project.run("check")[0] == 1
    assert project.errors == "The test failed: The key was refused.\n"


def test_setup_and_check_warn_of_alerts_that_have_no_address(project: ProjectAtWork) -> None:
    """Which stop no load."""
    project.answer(alert="message")
    project.write(".venv/bin/meltano", ANSWERS)
    del project.variables["ALERT_URL"]

    for command in ("setup", "check"):
        assert project.run(command, UV="true")[0] == 0
        says = "Warning: No alert is sent before ALERT_URL in .env has an address.\n"
        assert says in project.output


def test_setup_names_what_an_update_left_to_be_merged(project: ProjectAtWork) -> None:
    """Definitions that only half belong together install, and their builds fail."""
    project.write(".venv/bin/meltano", ANSWERS)
    for name in ("plugins.yml.new", "schedule/crontab.new"):
        project.write(name, "")
    for name in ("output/warehouse-copy.new", ".venv/lib/a.new"):  # of the program
        project.write(name, "")

    assert project.run("setup", UV="true")[0] == 0
    found = re.findall(r"Warning: (.+)\.new has the lines of an update that", project.output)
    assert sorted(found) == ["plugins.yml", "schedule/crontab"]


def test_what_has_to_be_done_first_is_named(project: ProjectAtWork) -> None:
    Path(".env").write_text("TAP_PUBLIC_JOBS_API_KEY=x\n", "utf-16")
    assert project.run("sync", "--scheduled")[:2] == (1, [])
    says = f"{project.folder}/.env is not in UTF-8: save it in UTF-8."
    assert project.errors.partition("\n")[0] == project.heard[0][1].partition("\n")[0] == says
    # A frequent schedule, whose stderr cron mails, alerts only once it has lasted.
    for since, alerts in (0, 0), (time.time() - 13 * MINUTE, 1), (None, 0):
        if since is not None:
            project.write(".meltano/failing.json", f"[{since or time.time()}, 0]")
        assert project.run("sync", "--if-news") == (1, [], says)
        assert (len(project.heard), bool(project.errors)) == (alerts, bool(alerts))
    assert project.run("setup")[:2] == (1, [])
    assert project.errors == f"\n{says}\nThen run: {project.folder}/setup\n"
    project.write(".env", 'TAP_PUBLIC_JOBS_API_KEY=x\nTAP_PUBLIC_JOBS_STREAM_MAPS="{"a": 1}"\n')
    assert project.run("sync")[:2] == (1, [])
    says = f"{project.folder}/.env, line 2 is not NAME=value, where JSON has no quotes.\n"
    assert project.errors == says
    project.write(".env", "TAP_PUBLIC_JOBS_API_KEY=\n")
    assert project.run("sync")[:2] == (1, [])
    assert project.errors == f"Write TAP_PUBLIC_JOBS_API_KEY into {project.folder}/.env.\n"
    assert project.run("sync", TAP_PUBLIC_JOBS_API_KEY_FILE="/key", LOADS="done")[0] == 0


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("meltano.yml", b"\xff\xfea\x00", ""),
        ("meltano.yml", b"", ""),
        ("meltano.yml", b"- 1\n", ""),
        ("meltano.yml", b"a: 1\n b: [\n", ", line 2"),
        ("plugins.yml", b"\tx: 1\n", ", line 1"),
    ],
)
def test_a_file_of_settings_that_meltano_cannot_read_is_named(
    project: ProjectAtWork, name: str, content: bytes, where: str
) -> None:
    """Else, dbt could not be started, and the database's address would be blamed."""
    (project.folder / name).write_bytes(content)

    assert project.run("check")[0] == 1
    says = f"{project.folder / name}{where} is not YAML in UTF-8: correct it.\n"
    assert project.errors == says


@pytest.mark.parametrize("command", ["setup", "check", "sync"])
def test_a_file_of_settings_that_is_missing_is_named(project: ProjectAtWork, command: str) -> None:
    """Meltano ignores it, so nothing would be installed, and the database would be blamed."""
    project.write(".venv/bin/meltano", ANSWERS)
    project.write("meltano.yml", "include_paths: [none/*.yml, mine.yml]\nenvironments: [{name: a}]")

    assert project.run(command, UV="true")[:2] == (1, [])
    says = f"{project.folder}/mine.yml, which meltano.yml includes, is missing: take it from git"
    assert says in project.errors

    project.write("mine.yml", "plugins: {}")
    assert project.run(command, UV="true", LOADS="done")[0] == 0


@pytest.mark.parametrize("text", ["a: 1", "environments:", "environments: []", "environments: [a]"])
def test_settings_without_an_environment_are_named(project: ProjectAtWork, text: str) -> None:
    project.write("meltano.yml", text)

    assert project.run("sync")[:2] == (1, [])
    says = f"{project.folder}/meltano.yml has no environment with a name: add it again.\n"
    assert project.errors == says


def test_an_environment_needs_no_variables(project: ProjectAtWork) -> None:
    """What dbt then takes for the name of the schema is also asked."""
    project.answer(warehouse="postgres")
    project.write("meltano.yml", "environments: [{name: prod, env: }]")

    status, _, said = project.run("sync", LOADS="done")

    assert (status, said.splitlines()[-1]) == (0, "Ask them: select * from analytics.open_jobs")


NAMES = ["TARGET_POSTGRES_SQLALCHEMY_URL", "MELTANO_DATABASE_URI", "TAP_PUBLIC_JOBS_CHANGES_URL"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("address", "works"), CASES["addresses"].items())
def test_an_address_of_a_database_that_cannot_work_is_named_and_not_shown(
    project: ProjectAtWork, name: str, address: str, works: bool
) -> None:
    """In a password, a reader of the address may decode any two characters after a %."""
    project.answer(warehouse="postgres")
    project.write(".env", f"TAP_PUBLIC_JOBS_API_KEY=x\n{name}={DRIVER}{address}\n")

    for options in [], ["--scheduled"]:
        status, called, _ = project.run("sync", *options, LOADS="done")
        assert (status == 0, "run" in called) == (works, works)
        assert (f"{name} in .env must be" in project.errors) is not works
        assert "% is %25, @ is %40" in project.errors or works
        assert "me:" not in project.errors
    assert ("@ is %40" in str(project.heard[-1])) is not works


@pytest.mark.parametrize("driver", ["mysql", "postgres", "postgresql+asyncpg", "postgresql"])
def test_an_address_of_another_database_is_named(project: ProjectAtWork, driver: str) -> None:
    """The build would take its host and password, and the loader would stop at it."""
    project.answer(warehouse="postgres")
    address = f"TARGET_POSTGRES_SQLALCHEMY_URL={driver}://me:x@host/db\n"
    project.write(".env", f"TAP_PUBLIC_JOBS_API_KEY=x\n{address}")

    status, called, _ = project.run("sync", LOADS="done")

    works = driver == "postgresql"
    assert (status == 0, "run" in called) == (works, works)
    assert ("must be postgresql+psycopg://user:" in project.errors) is not works


# What dbt writes when it cannot connect.
REFUSED = """\
04:00:00    Connection test: [ERROR connection test failed]
04:00:00  1 check failed:
04:00:00  dbt was unable to connect to the specified database.
The database returned the following error:

  >Database Error
  connection to server at "host" failed: FATAL:  password authentication failed for user "me"

Check your database credentials and try again.
"""
ANSWERS = """#!/bin/sh
case "$*" in
install*|*deps*) echo "$*" >> calls ;;
*debug*) [ ! -e refused ] || { cat refused; exit 1; } ;;
*--test*) cat warned 2> /dev/null; echo '{"event": "The key works.", "level": "info"}' ;;
esac
"""


@pytest.mark.parametrize(
    ("warehouse", "schedule", "setting", "status"),
    [
        ("postgres", "cron", "TARGET_POSTGRES_SQLALCHEMY_URL in .env", 1),
        (
            "snowflake",
            "none",
            "target-snowflake in meltano.yml, or TARGET_SNOWFLAKE_PRIVATE_KEY",
            1,
        ),
        ("bigquery", "github", "target-bigquery in meltano.yml, or TARGET_BIGQUERY_CREDENTIALS", 0),
    ],
)
def test_setup_connects_to_the_database_once(
    project: ProjectAtWork,
    monkeypatch: pytest.MonkeyPatch,
    warehouse: str,
    schedule: str,
    setting: str,
    status: int,
) -> None:
    """The machine that runs a pipeline on Kubernetes may reach what this one does not."""
    project.answer(warehouse=warehouse, schedule=schedule)
    project.write(".venv/bin/meltano", ANSWERS)
    monkeypatch.setattr(check, "error_of_encoding", lambda _: "")

    assert project.run("setup", UV="true")[0] == 0
    assert project.output.endswith(
        f"\nThe key works.\nREADME.md has the commands of this project. To load now: "
        f"{project.folder}/sync\n"
    )

    project.write("refused", REFUSED)
    assert project.run("setup", UV="true")[0] == status
    remedy = f"he database cannot be used. If its server is up, correct {setting}"
    error = (
        '.env: Database Error connection to server at "host" failed: FATAL: password '
        'authentication failed for user "me"\n'
    )
    if status:
        assert project.errors.startswith(f"\nT{remedy}")
        assert project.errors.endswith(f"{error}Then run: {project.folder}/setup\n")
    else:
        assert f"From here, t{remedy}" in project.output
        assert f"{error}\nThe key works.\n" in project.output


@pytest.mark.parametrize("encoding", ["UTF8", "LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_store_every_title_is_named_at_once(
    project: ProjectAtWork, postgresql: str, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    create = f"create database {name} encoding '{encoding}' locale 'C' template template0"
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute(f"drop database if exists {name}".encode())
        connection.execute(create.encode())
    address = postgresql.replace("/postgres?", f"/{name}?").replace(
        "postgresql:", "postgresql+psycopg:"
    )
    project.answer(warehouse="postgres")
    project.write(".venv/bin/meltano", ANSWERS)
    project.write(".env", f"TAP_PUBLIC_JOBS_API_KEY=x\nTARGET_POSTGRES_SQLALCHEMY_URL={address}\n")

    for command in ("setup", "check"):
        works = encoding == "UTF8"
        assert project.run(command, UV="true")[0] == (not works)
        says = "TARGET_POSTGRES_SQLALCHEMY_URL in .env: it is not in UTF-8, so one character that"
        assert (says in project.errors) is not works


def test_check_names_why_meltano_could_not_start_dbt(project: ProjectAtWork) -> None:
    project.answer(warehouse="postgres")
    lines = [
        '{"event": "No module named \'psycopg\'", "level": "error"}',
        '{"event": "Need help fixing this problem?", "level": "info"}',
    ]
    project.write(".venv/bin/meltano", "#!/bin/sh\ncat refused\nexit 1\n")
    project.write("refused", "\n".join(lines))

    assert project.run("check")[0] == 1
    assert project.errors.endswith("_URL in .env: No module named 'psycopg'\n")


@pytest.mark.parametrize(
    ("schedule", "state", "meltano"),
    [
        ("cron", "", "meltano"),
        ("airflow", "sqlite:////state.db", "meltano"),
        # Workers of Airflow may have no folder that outlives them.
        ("airflow", "postgresql+psycopg://me@host/states", "meltano[postgres]"),
        ("kubernetes", "", "meltano[s3]"),
    ],
)
def test_setup_installs_what_reads_the_state(
    project: ProjectAtWork, schedule: str, state: str, meltano: str
) -> None:
    project.answer(schedule=schedule, state="s3")
    project.write(".venv/bin/meltano", ANSWERS)
    project.write("bin/uv", '#!/bin/sh\necho "$*" >> installed\n').chmod(0o755)
    with (project.folder / ".env").open("a", encoding="utf-8") as file:
        file.write(f"MELTANO_DATABASE_URI={state}\n")

    assert project.run("setup", UV="bin/uv")[0] == 0
    assert f" {meltano}~=" in (project.folder / "installed").read_text("utf-8")


def test_setup_names_why_an_installation_failed(project: ProjectAtWork) -> None:
    project.write("bin/uv", '#!/bin/sh\n[ "$1" = python ] && exit $PYTHON\nexit 1\n').chmod(0o755)

    project.variables["UV"] = "bin/uv"
    assert project.run("setup", PYTHON="1")[0] == 1
    assert "The loader needs Python 3.11, and there is none: uv python install" in project.errors
    assert project.run("setup", PYTHON="0")[0] == 1
    assert "the lines above say why" in project.errors


def test_setup_says_which_folder_the_schedule_is_for_and_what_is_missing(
    project: ProjectAtWork,
) -> None:
    project.answer(schedule="cron", folder="/old")
    project.write(".venv/bin/meltano", ANSWERS)
    project.write(".env", "")

    assert project.run("setup", UV="true")[0] == 0
    moved, write, then = (
        project.output.removeprefix("\n").split("\n\n")[0],
        *project.output.splitlines()[-2:],
    )
    assert moved.startswith("The files in schedule/ are for /old. To run it here:\n  ./upgrade")
    assert moved.endswith(f"--data folder='{project.folder}'")
    assert write == f"Write TAP_PUBLIC_JOBS_API_KEY into {project.folder}/.env"
    assert then == f"Then run: {project.folder}/setup"
    assert project.calls() == ["install", "invoke dbt-duckdb:deps"]
