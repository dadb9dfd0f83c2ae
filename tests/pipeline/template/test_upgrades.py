"""Projects of the last release, made as its README says, and upgraded as today's pages say.

Git knows no name of their owner. What runs here is installed: nothing else of the template is.
"""

import os
import re
import shlex
import stat
from pathlib import Path

import pytest
from e2e.pipeline import REPOSITORY, Finished, commit, copier, installed, run
from e2e.scenario import published
from e2e.stores import Database, Row
from e2e.targets import DUCKDB, Target, meltanolabs, psycopg_url
from emulators.engines import BUCKET, moto
from harness import demo, paths
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.state import Sandbox

from dev.checks import commands
from tap_public_jobs.notification_log import NotificationLog

# Before the first release, this commit is in its place.
BEFORE_ANY = "e1192805"
pytestmark = pytest.mark.e2e


BY_GIT = """packages:
  - git: {}
    subdirectory: pipeline/transform
    revision: main
"""


def script(page: str, heading: str) -> str:
    """Return the commands below a heading of a page of today."""
    section = (REPOSITORY / page).read_text("utf-8").partition(f"\n{heading}\n")[2]
    found = commands.blocks(re.split("^#+ ", section, maxsplit=1, flags=re.MULTILINE)[0])
    return "\n".join(it.text for it in found if it.language in {"bash", "sh"})


class Owner:
    """Somebody with a home of their own, beside whose projects is the clone."""

    def __init__(self, source: Path, home: Path) -> None:
        self.home, self.source = home, source
        self.clone = home / "tap-public-jobs"
        uv = uv_command()
        cache = run(*uv, "cache", "dir", folder=home).succeeded().output.strip()
        self.variables = {
            "HOME": str(home),
            "UV_CACHE_DIR": cache,
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            # Git would make a name of that of the machine.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "user.useConfigOnly",
            "GIT_CONFIG_VALUE_0": "true",
        }
        run("git", "clone", "--quiet", source, self.clone, folder=home).succeeded()

    def go_back(self) -> None:
        """Make the clone what it was at the last release."""
        tags = ["tag", "--list", "v[0-9]*", "--sort=-version:refname"]
        released = run("git", *tags, folder=REPOSITORY).succeeded().output.split()
        release = released[0] if released else BEFORE_ANY
        git = ("git", "-C", self.clone)
        if run(*git, "cat-file", "-e", release, folder=self.home).status:  # of a shallow clone
            origin = run("git", "remote", "get-url", "origin", folder=REPOSITORY).succeeded().output
            run(*git, "fetch", "--unshallow", origin.strip(), folder=self.home).succeeded()
        run(*git, "reset", "--quiet", "--hard", release, folder=self.home).succeeded()
        later = run(*git, "tag", "--no-merged", release, folder=self.home).succeeded().output
        run(*git, "tag", "--delete", *later.split(), folder=self.home)

    def shell(self, script: str, folder: str = ".", **variables: str) -> Finished:
        command = ("/bin/bash", "-euo", "pipefail", "-c", script)
        return run(*command, folder=self.home / folder, **self.variables | variables)

    def make(self, **answers: str) -> Finished:
        """Make the project as the README in the clone says."""
        readme = (self.clone / "README.md").read_text("utf-8")
        (line,) = re.findall("^uvx copier copy.*", readme, re.MULTILINE)
        data = [f"--data={name}={answer}" for name, answer in answers.items()]
        return self.shell(f"{line} --defaults {shlex.join(data)}").succeeded()

    def upgrade(self, folder: str = ".") -> str:
        """Run what today's page says, in the folder of both clone and project."""
        return self.shell(script("docs/operate/moving.md", "## Upgrade"), folder).succeeded().output


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """What the clone comes from, with a version newer than all."""
    clone = tmp_path / "origin" / "tap-public-jobs"
    clone.parent.mkdir()
    run("git", "clone", "--quiet", REPOSITORY, clone, folder=REPOSITORY).succeeded()
    run("git", "checkout", "--quiet", "-B", "main", folder=clone).succeeded()
    commit(clone, "v99.1")
    return clone


@pytest.fixture
def owner(source: Path, tmp_path: Path) -> Owner:
    home = tmp_path / "home"
    home.mkdir()
    return Owner(source, home)


def last_two(output: str) -> str:
    return "\n".join(output.rstrip().splitlines()[-2:])


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


# The tests of the data take most of the time of a build, and tests/pipeline/transform runs them.
WITHOUT_TESTS = "data_tests:\n  public_jobs:\n    +enabled: false\n"


def build_without_tests(project: Path) -> Path:
    """Add lines of the user's own to the dbt project, and return its file."""
    file = project / "transform/dbt_project.yml"
    file.write_text(file.read_text("utf-8") + WITHOUT_TESTS, "utf-8")
    return file


def store_of(target: Target, folder: Path, database: str) -> Database:
    store = target.store(folder, database)
    assert isinstance(store, Database)
    return store


def assert_holds(
    target: Target, folder: Path, database: str, sandbox: Sandbox, analytics: str = "analytics"
) -> None:
    """Compare every row of the raw tables, and the titles in the final ones."""
    store = store_of(target, folder, database)
    target.assert_holds(store, published(sandbox))
    open_jobs = store.fetch(f"select id, job_title from {analytics}.open_jobs")  # noqa: S608
    titles = {row["id"]: row["job_title"] for row in open_jobs}
    assert titles == {job["id"]: job["jobTitle"].strip() for job in published(sandbox)}


def dates(store: Database) -> list[Row]:
    """Since when each job is published; a run without a state dates all of them anew."""
    table = store.source("job_publications")
    return store.fetch(f"select id, opened_after, first_seen_at from {table} order by id")  # noqa: S608


def assert_kept(before: list[Row], store: Database) -> None:
    after = dates(store)
    assert before
    assert [it for it in before if it not in after] == []


def history(store: Database, analytics: str = "analytics") -> set[object]:
    """The versions that dbt has kept of each job, which no load brings again."""
    table = f"{analytics}_history.job_history"
    return {row["dbt_scd_id"] for row in store.fetch(f"select dbt_scd_id from {table}")}  # noqa: S608


@pytest.mark.xdist_group("duckdb")
def test_duckdb_moved_and_upgraded(owner: Owner) -> None:
    """Settings, state and dates come along, and a run that is incomplete is built, too."""
    owner.go_back()
    with demo(5) as (sandbox, tap):
        owner.make(base_url=tap["base_url"], api_key=sandbox.key, schedule="cron")
        project = owner.home / "my-pipeline"
        change(project / "meltano.yml", "refresh: all", "refresh: changed")
        with (project / ".env").open("a", encoding="utf-8") as file:
            file.write("MINE=1\n")
        build_without_tests(project)
        run(project / "sync", folder=owner.home, **owner.variables).succeeded()
        store = store_of(DUCKDB, project / "output", "")
        before, kept = dates(store), history(store)
        (owner.home / "srv").mkdir()
        project = project.rename(owner.home / "srv/my-pipeline")
        (owner.home / "srv/tap-public-jobs").symlink_to(owner.clone)

        ended = run(project / "sync", folder=owner.home, **owner.variables)
        says = f"This project is not set up in this folder: run '{project}/setup'.\n"
        assert (ended.status, ended.output) == (1, says)
        upgraded = owner.upgrade("srv")

        assert f"folder='{project}'" in upgraded
        works, then = last_two(upgraded).splitlines()
        assert works.startswith("The key works: 5 published jobs")
        assert then.endswith(f"To load now: {project}/sync")
        assert "_commit: v99.1" in (project / ".copier-answers.yml").read_text("utf-8")
        assert "refresh: changed" in (project / "meltano.yml").read_text("utf-8")
        assert (project / "transform/dbt_project.yml").read_text("utf-8").endswith(WITHOUT_TESTS)
        assert {"MINE=1", f"TAP_PUBLIC_JOBS_API_KEY={sandbox.key}"} <= {
            *(project / ".env").read_text("utf-8").splitlines()
        }
        left = [it.name for it in project.glob("*.new")]  # by a line beside that of the mode
        assert [it for it in left if f"{it} has the new ones." not in upgraded] == []

        sandbox.publish(make_jobs(6)[-1])
        refused = published(sandbox)[0]["publicId"]
        sandbox.fail_next("http_400", times=None, path=f"/{refused}")
        fetched = {"TAP_PUBLIC_JOBS_DETAIL_REFRESH": "all"}
        ended = run(project / "sync", folder=owner.home, **owner.variables, **fetched)
        assert last_two(ended.output).startswith("The load failed: The sync is incomplete. ")
        assert_holds(DUCKDB, project / "output", "", sandbox)
        store = store_of(DUCKDB, project / "output", "")
        assert_kept(before, store)
        assert kept
        assert kept < history(store)


def load_another(owner: Owner, database: str, tmp_path: Path) -> None:
    """Make and load a second project, with a wrong key first, and with its state on S3."""
    with demo(3) as (others, theirs), moto(tmp_path) as address:
        s3 = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
        s3 |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": address}
        state = {"state": "s3", "state_url": f"s3://{BUCKET}/of-runs"}
        given = (
            {"warehouse": "postgres", "credentials": psycopg_url(database)}
            | state
            | {"source": owner.source.as_uri(), "schedule": "github"}
        )
        second = owner.home / "globex"
        data = given | {"base_url": theirs["base_url"], "api_key": "pj_wrong"}
        made = copier("copy", owner.source, second, where=owner.home, **data).succeeded().output
        assert "\nThe test failed: " in made
        assert made.rstrip().endswith(f"\nThen run: {second}/setup")
        assert stat.filemode((second / ".env").stat().st_mode) == "-rw-------"
        change(second / ".env", "pj_wrong", others.key)
        made = run(second / "setup", folder=owner.home).succeeded().output
        assert last_two(made).startswith("The key works: 3 published jobs")
        assert others.key not in made
        build_without_tests(second)
        ended = run(second / "sync", folder=owner.home, **s3).succeeded()
        assert last_two(ended.output).startswith("3 jobs loaded, tables built.\n")
        there = meltanolabs("hard", "globex"), second, database, others
        assert_holds(*there, "globex_analytics")
        (second / ".meltano/meltano.db").unlink()  # as on a new machine
        change(second / "meltano.yml", "refresh: all", "refresh: changed")
        others.requests.clear()
        load = (
            ".venv/bin/meltano",
            "run",
            "--no-install",
            "tap-public-jobs",
            "target-postgres",
        )
        run(*load, folder=second, **s3).succeeded()
        assert paths(others.requests) == ["/jobs?page=1"]  # the state has outlived
        assert_holds(*there, "globex_analytics")


@pytest.mark.xdist_group("postgres")
def test_postgresql_with_webhooks_upgraded_beside_another_organisation(
    owner: Owner, tmp_path: Path, database: str
) -> None:
    """The second project is new, with its state on S3."""
    owner.go_back()
    project = owner.home / "my-pipeline"
    target = meltanolabs("hard", "my_pipeline")
    changes = f"sqlite:///{tmp_path}/changes.db"
    log = NotificationLog(changes)
    log.append({log.name: []})
    postgres = {"warehouse": "postgres", "credentials": psycopg_url(database)}
    with demo(5) as (sandbox, tap):
        given = {"api_key": sandbox.key, "base_url": tap["base_url"], "changes_url": changes}
        owner.make(**postgres, **given, schedule="cron", webhooks="true")
        crontab = (project / "schedule/crontab").read_text("utf-8")
        build_without_tests(project)
        owner.shell("my-pipeline/sync").succeeded()
        store, analytics = store_of(target, project, database), "my_pipeline_analytics"
        before, kept = dates(store), history(store, analytics)

        owner.upgrade()

        assert (project / "schedule/crontab").read_text("utf-8") == crontab
        assert "/sync' --if-news >> " in crontab
        sandbox.requests.clear()
        assert owner.shell("my-pipeline/sync --if-news").succeeded().output == ""
        assert sandbox.requests == []
        named = published(sandbox)[0]["publicId"]
        sandbox.edit(named, roleOverview="another")
        log.append({log.name: [named]})
        ended = owner.shell("my-pipeline/sync --if-news").succeeded()
        assert last_two(ended.output).startswith("5 jobs loaded, tables built.\n")
        # One line says how the build ended, and none what it does.
        assert ended.output.count("public_jobs: ") == 1
        assert "OK created" not in ended.output
        assert "unit_test" not in ended.output
        assert {"/jobs?page=1", f"/jobs/{named}"} <= {*paths(sandbox.requests)}
        assert_holds(target, project, database, sandbox, analytics)
        assert_kept(before, store)
        assert kept
        assert kept <= history(store, analytics)

        load_another(owner, database, tmp_path)
        assert_holds(target, project, database, sandbox, analytics)


@pytest.mark.xdist_group("duckdb")
def test_the_tap_in_an_own_meltano_project_upgraded(owner: Owner) -> None:
    """Made as the page of the last release says, and upgraded as today's says."""
    owner.go_back()
    meltano = {"PATH": f"{installed('meltano~=4.4')}:{os.environ['PATH']}"}
    with demo(5) as (sandbox, tap):
        page = (owner.clone / "docs/set-up/start.md").read_text("utf-8")
        section = page.partition("\n## Add the tap to your own project\n")[2].partition("\n## ")[0]
        made = "\n".join(it.command for it in commands.blocks(section))
        made = re.sub("^uv tool .*\n", "", made, flags=re.MULTILINE)
        made = made.replace(" dbt-duckdb:build", "")  # that of the end is enough
        made = made.replace("your-key", sandbox.key)
        made = made.replace("https://jobs.example.com", tap["base_url"])
        owner.shell(made, **meltano).succeeded()
        project = owner.home / "my-project"
        changed = "- name: tap-public-jobs\n    config: {detail_refresh: changed}\n"
        change(project / "meltano.yml", "- name: tap-public-jobs\n", changed)
        build_without_tests(project)
        before = dates(store_of(DUCKDB, project / "output", ""))
        # Beside it, a dbt project that takes the package by git, from a branch.
        by_git = owner.home / "by-git"
        by_git.mkdir()
        (by_git / "dbt_project.yml").write_text("name: by_git\nprofile: public_jobs\n", "utf-8")
        (by_git / "packages.yml").write_text(BY_GIT.format(owner.clone.as_uri()), "utf-8")
        programs = project / ".meltano/utilities/dbt-duckdb/venv/bin"
        dbt = {"DBT_PROFILES_DIR": str(owner.clone / "pipeline/transform")}
        run(programs / "dbt", "deps", folder=by_git, **owner.variables | dbt).succeeded()

        upgrade = script("docs/operate/moving.md", "### The tap in your own Meltano project")
        owner.shell(upgrade, **meltano).succeeded()

        sandbox.publish(make_jobs(6)[-1])
        daily = "meltano run tap-public-jobs target-duckdb dbt-duckdb:build"
        owner.shell(daily, "my-project", **meltano).succeeded()
        assert_holds(DUCKDB, project / "output", "", sandbox)
        assert_kept(before, store_of(DUCKDB, project / "output", ""))
        page = (REPOSITORY / "docs/operate/moving.md").read_text("utf-8")
        (command,) = re.findall("From git: `(dbt .+?)`", page)
        upgrade = f"{programs}/{command}"
        owner.shell(upgrade, "by-git", **dbt).succeeded()
        newest = run("git", "rev-parse", "HEAD", folder=owner.clone).succeeded().output
        assert f"revision: {newest}" in (by_git / "package-lock.yml").read_text("utf-8")
