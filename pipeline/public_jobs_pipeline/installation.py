"""Installs what a project needs into its folder, and checks that it can run."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from public_jobs_pipeline import check, env
from public_jobs_pipeline.meltano import MELTANO
from public_jobs_pipeline.project import ELSEWHERE, Flaw, Project, check_settings
from public_jobs_pipeline.warehouse import DRIVERS

MELTANO_VERSION, APPRISE_VERSION = "~=4.4", "~=2.2"
# The loaders and dbt of these warehouses need DuckDB 1.0 or drivers without wheels for newer ones.
LOADER_PYTHON = {"duckdb": "3.11", "bigquery": "3.11"}
# Folders of a project in which other programs write.
OF_OTHERS = {".git", ".meltano", ".venv", "output"}
# The programs of an environment contain the path of the folder where they were installed.
FOLDER = Path(".venv/folder")


def set_up(project: Project) -> int:
    """Write .env if it is missing, install Meltano and the plugins, and check what a run needs.

    Raises:
        Flaw: It has to be corrected first.
    """
    here = Path.cwd()
    lacking = env.fill()
    env.check_form()
    if project.schedule in ELSEWHERE:
        # The state of the runs is not needed here, and its database may be out of reach.
        os.environ |= {
            "MELTANO_DATABASE_URI": f"sqlite:///{here}/.meltano/meltano.db",
            "MELTANO_STATE_BACKEND_URI": "systemdb",
        }
    check_settings()
    for file in left_by_an_update():
        print(
            f"Warning: {file} has the lines of an update that differ from yours: merge them into "
            f"{file.with_suffix('')}, and delete it.",
            flush=True,
        )
    install(project)
    FOLDER.write_text(f"{here}\n", "utf-8")
    Path("output").mkdir(exist_ok=True)
    if moved := moved_from(project):
        print(
            f"\nThe files in schedule/ are for {moved}. To run it here:\n"
            f"  ./upgrade --data folder='{here}'"
        )
    if lacking:
        print("\n".join([f"\n{here}/.env has no place yet for these lines; add them:", *lacking]))
    if names := env.missing():
        print(f"\nWrite {' and '.join(names)} into {here}/.env\nThen run: {here}/setup")
        return 0
    said = check.everything(project)
    print(f"\n{said}\nREADME.md has the commands of this project. To load now: {here}/sync")
    return 0


def left_by_an_update() -> Iterator[Path]:
    """Yield the files that an update has left to be merged."""
    for entry in Path().iterdir():
        if entry.name not in OF_OTHERS:
            for file in entry.rglob("*.new") if entry.is_dir() else [entry]:
                if file.suffix == ".new":
                    yield file


def install(project: Project) -> None:
    """Install Meltano, the plugins, and the packages of dbt.

    Raises:
        Flaw: One of them could not be installed.
    """
    uv = os.environ.get("UV", "uv")
    state = project.state if project.schedule in ELSEWHERE else ""
    if not state and env.setting("MELTANO_DATABASE_URI").startswith("postgres"):
        state = "postgres"
    packages = [f"meltano{f'[{state}]' if state else ''}{MELTANO_VERSION}"]
    packages += [DRIVERS[project.warehouse]] if project.warehouse in DRIVERS else []
    if project.alert == "message" or project.digest != "none":
        packages += [f"apprise{APPRISE_VERSION}"]
    (meltano, _), dbt = MELTANO, f"dbt-{project.warehouse}:deps"
    for command in (
        [uv, "pip", "install", "--quiet", "--python", ".venv", *packages],
        [meltano, "install"],
        [meltano, "invoke", dbt],
    ):
        if subprocess.run(command, check=False).returncode:  # noqa: S603  # no user input
            raise Flaw(why_not_installed(project, uv))


def why_not_installed(project: Project, uv: str) -> str:
    """Return the usual cause, or where it is said."""
    version = LOADER_PYTHON.get(project.warehouse)
    if version and shutil.which(uv):
        find = [uv, "python", "find", "--quiet", version]
        if subprocess.run(find, capture_output=True, check=False).returncode:  # noqa: S603
            return (
                f"The loader needs Python {version}, and there is none: uv python install {version}"
            )
    return (
        "The installation failed, and the lines above say why. If they name a host, the network or "
        "a proxy does not let it through; if they name an index without upload times, take "
        "exclude-newer out of uv.toml."
    )


def moved_from(project: Project) -> str:
    """Return the folder that the schedule's files name, if it is another one."""
    return project.folder if project.folder not in {"", str(Path.cwd())} else ""
