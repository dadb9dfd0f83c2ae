"""The tables of a project: where they are, and who may read them from here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from public_jobs_pipeline import env, tables
from public_jobs_pipeline.project import Flaw, Project, analytics
from public_jobs_pipeline.tables import RunQuery

# A copy for readers, because one who has the database itself open would lock it.
COPY = Path("output/warehouse-copy.duckdb")
BUILD = "Run ./sync first."
# What reads them, which `setup` installs: the DuckDB of dbt, because it is there already.
DRIVERS = {"duckdb": "duckdb==1.5.6", "postgres": "psycopg[binary]>=3.2"}


@contextmanager
def opened(project: Project, names: Sequence[str]) -> Iterator[tuple[RunQuery, str]]:
    """Open the tables that the last build made.

    Args:
        project: The project.
        names: The tables that have to be there.

    Yields:
        What runs a query, and the schema of the tables.

    Raises:
        Flaw: They cannot be read.
    """
    try:
        with tables.opened(address(project)) as run:
            yield run, tables.found(run, BUILD, names, analytics())
    except tables.WarehouseError as error:
        raise Flaw(str(error)) from None
    except ModuleNotFoundError:
        message = "What reads the tables is not installed: run ./setup."
        raise Flaw(message) from None


def address(project: Project) -> str:
    """Return the file or the address of the tables.

    Raises:
        Flaw: The tables cannot be read from here.
    """
    if project.warehouse not in DRIVERS:
        message = "Tables in Snowflake and BigQuery cannot be read from here."
        raise Flaw(message)
    if project.warehouse == "duckdb":
        if not COPY.exists():
            message = f"{COPY} is missing. {BUILD}"
            raise Flaw(message)
        return str(COPY)
    env.check()
    return env.setting("TARGET_POSTGRES_SQLALCHEMY_URL")
