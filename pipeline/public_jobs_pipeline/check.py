"""What has to be corrected before a run: the file .env, addresses, the database and the key."""

import re
from collections.abc import Iterator
from pathlib import Path

from public_jobs_pipeline import alerts, env, meltano, tables, warehouse
from public_jobs_pipeline.meltano import Line
from public_jobs_pipeline.project import (
    ELSEWHERE,
    TAP,
    Flaw,
    Project,
    check_settings,
)

# The variables that may hold the address of a PostgreSQL, and its form. Of another one, several
# programs would read different parts, and show a part of the password as the host.
ADDRESSES = (
    "TARGET_POSTGRES_SQLALCHEMY_URL",
    "MELTANO_DATABASE_URI",
    "TAP_PUBLIC_JOBS_CHANGES_URL",
)
FORM = re.compile(
    r"(?!.*%(?![\da-fA-F]{2}))postgresql([+]psycopg2?)?://([^\s\"'@/?#]+@)?"
    r"(\[[\da-fA-F:]+\]|[^\s\"'@/?#:]*)(:[1-6]?\d{1,4})?/[^\s\"'@?/]+([?][^\s\"'@]*)?"
)
NOT_UTF8 = (
    "it is not in UTF-8, so one character that it lacks, such as Ł, stops every load. Create one "
    "with encoding 'UTF8' template template0."
)
# Where a project says which database it uses.
DATABASE = {
    "postgres": "TARGET_POSTGRES_SQLALCHEMY_URL in .env",
    "snowflake": "target-snowflake in meltano.yml, or TARGET_SNOWFLAKE_PRIVATE_KEY in .env",
    "bigquery": "target-bigquery in meltano.yml, or TARGET_BIGQUERY_CREDENTIALS_JSON in .env",
}


def before_a_run() -> None:
    """Find what would stop a run, without any request.

    Raises:
        Flaw: It has to be corrected first.
    """
    env.check()
    check_settings()
    for name in ADDRESSES:
        address = env.setting(name)
        is_read = address.startswith("postgres") or name.startswith("TARGET_")
        if address and is_read and not FORM.fullmatch(address):
            message = (
                f"{name} in .env must be postgresql+psycopg://user:password@host/database. In a "
                "password, % is %25, @ is %40 and / is %2F."
            )
            raise Flaw(message)


def everything(project: Project) -> str:
    """Check what a run needs: also the address of alerts, the database and the key.

    Returns:
        What the tap says of the key, after what somebody should look at.

    Raises:
        Flaw: It has to be corrected first.
    """
    before_a_run()
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
    warnings = [it.text for it in lines if it.fields.get("level") == "warning"]
    if project.alert == "message" and not env.setting("ALERT_URL"):
        warnings.append("No alert is sent before ALERT_URL in .env has an address.")
    warned = "".join(f"Warning: {it}\n" for it in [*env.replaced(project), *warnings])
    if status:
        message = f"{warned}The test failed: {meltano.reason(lines, TAP)}"
        raise Flaw(message)
    return f"{warned}{next(line.text for line in reversed(lines) if line.text)}"


def error_of_database(project: Project) -> str:
    """Connect to the warehouse as dbt does; returns why that failed, and nothing if it worked."""
    if project.warehouse == "duckdb":  # a file, which a connection would make
        return ""
    plugin = f"dbt-{project.warehouse}"
    status, lines = answer("invoke", "--no-install", plugin, "debug", "--connection")
    if status:
        found = " ".join(error_in(lines)) or meltano.reason_of_dbt(lines)
        return " ".join(found.split())[:1000]
    return error_of_encoding(project) if project.warehouse == "postgres" else ""


def error_of_encoding(project: Project) -> str:
    """Return why the database could not store every title; empty if it can."""
    try:
        with tables.opened(warehouse.address(project)) as run:
            ((is_utf8,),) = run("select getdatabaseencoding() = 'UTF8'").fetchall()
    except tables.WarehouseError as error:
        return str(error)
    return "" if is_utf8 else NOT_UTF8


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
    folder, me = Path.cwd(), env.user()
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
