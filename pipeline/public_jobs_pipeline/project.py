"""What the project is: the answers that copier keeps, and what follows from them."""

import os
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

ANSWERS = Path(".copier-answers.yml")
MELTANO_YML = Path("meltano.yml")
# Environments that GitHub and Kubernetes make anew for each run, with the state elsewhere.
ELSEWHERE = ("github", "kubernetes")
TAP = "tap-public-jobs"


class Flaw(Exception):  # noqa: N818  # a user's mistake, and no error of the program
    """What has to be corrected first, in one line."""


class Project(NamedTuple):
    """The answers that the program needs."""

    warehouse: str
    name: str = ""
    schedule: str = "none"
    state: str = "postgres"
    webhooks: bool = False
    alert: str = "none"
    digest: str = "none"
    folder: str = ""

    @classmethod
    def here(cls) -> Self:
        """Read the project in the working folder.

        Raises:
            Flaw: This is no project of the template.
        """
        wrong = (FileNotFoundError, IsADirectoryError, UnicodeError, yaml.YAMLError)
        try:
            answers = yaml.safe_load(ANSWERS.read_text("utf-8"))
            return cls(**{name: it for name, it in answers.items() if name in cls._fields})
        except (*wrong, AttributeError, TypeError) as error:
            remedy = "take it from git again, or run this in the folder of a project"
            message = f"{ANSWERS.absolute()} is missing or damaged: {remedy}."
            raise Flaw(message) from error

    @property
    def unit(self) -> str:
        """The name that schedules know the project by."""
        return self.name.replace("_", "-")

    @property
    def target(self) -> str:
        """The loader."""
        return f"target-{self.warehouse}"

    @property
    def log(self) -> str:
        """Where the log of a scheduled run is."""
        address = "/".join(
            os.environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY")
        )
        units = [f"{self.unit}.service", f"{self.unit}-news.service"][: 1 + self.webhooks]
        return {
            "cron": str(Path("output/sync.log").absolute()),
            "systemd": " ".join(["journalctl", *(f"_SYSTEMD_USER_UNIT={it}" for it in units)]),
            "airflow": f"the task sync of the DAG {self.name}",
            "github": f"{address}/actions/runs/{os.environ.get('GITHUB_RUN_ID', '')}",
            "kubernetes": f"kubectl logs {os.environ.get('HOSTNAME', '')}",
        }.get(self.schedule, "the terminal")

    @property
    def ask(self) -> str:
        """How to ask the tables."""
        if self.warehouse == "duckdb":
            return "uvx --from duckdb-cli duckdb -readonly output/warehouse-copy.duckdb"
        return f"select * from {analytics()}.open_jobs"  # noqa: S608  # only shown

    @property
    def state_id(self) -> str:
        """The name under which Meltano keeps the state of the runs."""
        here = environment()
        suffix = f":{here['state_id_suffix']}" if here.get("state_id_suffix") else ""
        return f"{here['name']}:{TAP}-to-{self.target}{suffix}"


def check_settings() -> None:
    """Find a file of settings that Meltano cannot read, because its error may name another one.

    It says nothing at all of an included file that is missing, and then knows no plugin.

    Raises:
        Flaw: It has to be corrected first.
    """
    for name in settings_in(MELTANO_YML).get("include_paths") or []:
        for file in Path().glob(name) if "*" in name else [Path(name)]:
            settings_in(file)
    environment()


def settings_in(file: Path) -> dict[str, Any]:
    """Read a file of settings.

    Raises:
        Flaw: Meltano cannot read it.
    """
    try:
        return dict(yaml.safe_load(file.read_text("utf-8-sig")))
    except FileNotFoundError as error:
        included = "" if file == MELTANO_YML else f", which {MELTANO_YML} includes,"
        message = f"{file.absolute()}{included} is missing: take it from git again."
        raise Flaw(message) from error
    except (IsADirectoryError, TypeError, ValueError, yaml.YAMLError) as error:
        place = getattr(error, "problem_mark", None)
        where = f", line {place.line + 1}" if place else ""
        message = f"{file.absolute()}{where} is not YAML in UTF-8: correct it."
        raise Flaw(message) from error


def environment() -> dict[str, Any]:
    """Return Meltano's environment that runs use.

    Raises:
        Flaw: meltano.yml has no environment.
    """
    try:
        found: dict[str, Any] = yaml.safe_load(MELTANO_YML.read_text("utf-8-sig"))
        first = found["environments"][0]
        return {"name": first["name"], **first}
    except (IndexError, KeyError, TypeError) as error:
        message = f"{MELTANO_YML.absolute()} has no environment with a name: add it again."
        raise Flaw(message) from error


def analytics() -> str:
    """Return the schema of the final tables."""
    return str((environment().get("env") or {}).get("PUBLIC_JOBS_ANALYTICS") or "analytics")
