"""What has to be corrected before a run: the file .env, addresses, the database and the key."""

import getpass
import re
from collections.abc import Iterator
from pathlib import Path

from public_jobs_pipeline import alerts, env, meltano
from public_jobs_pipeline.meltano import Line
from public_jobs_pipeline.project import ELSEWHERE, TAP, Flaw, Project, check_settings

# Of a TCP port.
LARGEST_PORT = 65_535
# How the address of a PostgreSQL begins, before ://.
SCHEMES = ("postgresql", "postgresql+psycopg", "postgresql+psycopg2")
# The variables that may hold one.
ADDRESSES = (
    "TARGET_POSTGRES_SQLALCHEMY_URL",
    "MELTANO_DATABASE_URI",
    "TAP_PUBLIC_JOBS_CHANGES_URL",
)
# Where a project says which database it uses.
DATABASE = {
    "postgres": "TARGET_POSTGRES_SQLALCHEMY_URL in .env",
    "snowflake": "target-snowflake in meltano.yml, or TARGET_SNOWFLAKE_PRIVATE_KEY in .env",
    "bigquery": "target-bigquery in meltano.yml, or TARGET_BIGQUERY_CREDENTIALS_JSON in .env",
}


def before_a_run(project: Project) -> None:
    """Find what would stop a run, without any request.

    Raises:
        Flaw: It has to be corrected first.
    """
    if project.clone and not (project.clone / "pyproject.toml").exists():
        message = f"The tap's clone {project.clone} is gone: clone it there again."
        raise Flaw(message)
    env.check()
    check_settings()
    for name in ADDRESSES:
        address = env.setting(name)
        is_read = address.startswith("postgres") or name.startswith("TARGET_")
        if address and is_read and not is_address(address):
            message = (
                f"{name} in .env must be postgresql+psycopg://user:password@host/database. In a "
                "password, % is %25, @ is %40 and / is %2F."
            )
            raise Flaw(message)


def is_address(text: str) -> bool:
    """Return whether each reader understands an address; their errors would show the password."""
    from sqlalchemy import make_url  # noqa: PLC0415  # takes longer than a look for news
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        return False
    is_port = url.port is None or url.port <= LARGEST_PORT
    # SQLAlchemy takes a % that encodes nothing for itself, and profiles.yml of dbt does not.
    is_encoded = not re.search(r"%(?![\da-fA-F]{2})", text)
    is_known = url.drivername in SCHEMES  # dbt reads any, and the loader no other
    # SQLAlchemy looks for the password up to the last @, and profiles.yml up to the first /.
    is_whole = bool(url.username) == ("@" in text.partition("://")[2].partition("/")[0])
    return (
        is_known
        and is_whole
        and is_port
        and is_encoded
        and bool(url.database)
        and "@" not in f"{url.host}{url.database}"
    )


def everything(project: Project) -> str:
    """Check what a run needs: also the address of alerts, the database and the key.

    Returns:
        What the tap says of the key.

    Raises:
        Flaw: It has to be corrected first.
    """
    before_a_run(project)
    for name in alerts.ANSWERS:
        if env.setting(name) and (flaw := alerts.service_at(name)[1]):
            raise Flaw(flaw)
    if flaw := error_of_database(project):
        remedy = f"If its server is up, correct {DATABASE[project.warehouse]}: {flaw}"
        if project.schedule not in ELSEWHERE:
            message = f"The database cannot be used. {remedy}"
            raise Flaw(message)
        # The machine that runs it may reach what this one does not.
        print(f"From here, the database cannot be used. {remedy}", flush=True)
    status, lines = answer("invoke", "--no-install", TAP, "--test")
    said = next((line.text for line in reversed(lines) if line.text), "the tap wrote nothing")
    if status:
        message = f"The test failed: {said}"
        raise Flaw(message)
    return said


def error_of_database(project: Project) -> str:
    """Connect to the warehouse as dbt does; returns why that failed, and nothing if it worked."""
    if project.warehouse == "duckdb":  # a file, which a connection would make
        return ""
    plugin = f"dbt-{project.warehouse}"
    status, lines = answer("invoke", "--no-install", plugin, "debug", "--connection")
    if not status:
        return ""
    found = " ".join(error_in(lines)) or meltano.reason_of_dbt(lines)
    return " ".join(found.split())[:1000]


def error_in(lines: list[Line]) -> Iterator[str]:
    """Yield the error that `dbt debug` quotes: what follows a > up to an empty line."""
    is_quoted = False
    for line in lines:
        is_quoted = bool(line.text) and (is_quoted or line.text.startswith(">"))
        if is_quoted:
            yield line.text.lstrip(">")


def answer(*arguments: str) -> tuple[int, list[Line]]:
    """Run a command of Meltano without showing it; returns its status and its lines."""
    ended = meltano.quietly(*arguments)
    text = (ended.stdout + ended.stderr).decode(errors="replace")
    return ended.returncode, [Line.parse(line) for line in text.splitlines()]


def owner_of(path: Path) -> str:
    """Return who a file belongs to."""
    try:
        return path.owner()
    except KeyError:  # a user of another machine
        return str(path.stat().st_uid)


def foreign(path: str | Path, why: str) -> str:
    """Say whose a file is that cannot be used, and who has to do what."""
    folder, me = Path.cwd(), getpass.getuser()
    owner = owner_of(folder)
    if owner != me:
        return (
            f"{path} cannot be used: {why}. The project belongs to {owner}: run this as that user, "
            f"as with sudo -u {owner}."
        )
    return (
        f"{path} cannot be used: {why}. If it is another user's, as after a run as root: "
        f"sudo chown -R {owner} '{folder}'"
    )
