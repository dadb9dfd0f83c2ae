"""What a release, an image and a page repeat, and must not repeat wrongly."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
VERSION: str = PROJECT["version"]
ADDRESS: str = PROJECT["urls"]["Repository"]


def files() -> list[Path]:
    """The files of the repository that are text, but for this one."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listed, cwd=REPOSITORY, text=True).splitlines()
    paths = [REPOSITORY / name for name in names if not name.endswith(".svg")]
    return [path for path in paths if path.is_file() and path != Path(__file__)]


def test_every_address_of_the_repository_is_the_one_of_the_package() -> None:
    host = re.escape(ADDRESS.partition("://")[2].partition("/")[0])
    owner_and_name = re.compile(rf"{host}/[\w.-]+/[\w-]+")
    found = {
        address
        for path in files()
        for address in owner_and_name.findall(path.read_text("utf-8", errors="replace"))
    }

    assert found == {ADDRESS.partition("://")[2]}


def test_what_the_package_index_shows_has_no_relative_link() -> None:
    """It has none of the files beside the README."""
    text = metadata("tap-public-jobs").json["description"]
    links = re.findall(r"(?:\]\(|src=\"|srcset=\")([^)\"]+)", str(text))

    assert links
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_tap_is_installed_by_its_name_from_the_first_release_on() -> None:
    """Until then, anybody could take the name on the package index."""
    changelog = (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    released = re.search(r"^## \[.*\] - \d", changelog, re.MULTILINE)
    by_name = re.compile(
        r"(?:pip install|tool install|uvx|pip_url:) +(?:--[\w-]+ +\S+ +)*['\"]?tap-public-jobs.*"
    )
    found = {
        f"{path.name}: {line}"
        for path in files()
        if path.name not in {"RELEASING.md", "release.yml"}
        for line in by_name.findall(path.read_text("utf-8", errors="replace"))
    }
    definition = REPOSITORY / "plugins" / "extractors" / "tap-public-jobs.yml"
    minor = VERSION.rpartition(".")[0]

    assert released or found == set()
    assert yaml.safe_load(definition.read_text("utf-8"))["pip_url"] == (
        f"tap-public-jobs~={minor}.0" if released else "../tap-public-jobs"
    )


class TestRelease:
    """The steps of the workflow that need no forge, in a fresh clone."""

    def run(self, folder: Path, tag: str, heading: str) -> subprocess.CompletedProcess[str]:
        clone = folder / "clone"
        command: list[str | Path] = ["git", "clone", "--quiet", REPOSITORY, clone]
        subprocess.run(command, check=True)
        changelog = clone / "CHANGELOG.md"
        any_heading = rf"^## \[{re.escape(VERSION)}\].*$"
        text = re.sub(any_heading, heading, changelog.read_text("utf-8"), flags=re.MULTILINE)
        changelog.write_text(text, encoding="utf-8")
        workflow = yaml.safe_load((clone / ".github/workflows/release.yml").read_text("utf-8"))
        steps = [step for job in ("build", "check") for step in workflow["jobs"][job]["steps"]]
        inherited = {name: it for name, it in os.environ.items() if name != "VIRTUAL_ENV"}
        script = "\n".join(step["run"] for step in steps if "run" in step)
        return subprocess.run(
            ["/bin/bash", "-e", "-c", script],
            cwd=clone,
            env=inherited | {"GITHUB_REF_NAME": tag},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )

    @pytest.mark.e2e
    def test_it_builds_and_runs_what_is_uploaded(self, tmp_path: Path) -> None:
        finished = self.run(tmp_path, f"v{VERSION}", f"## [{VERSION}] - 2026-11-22")

        assert finished.returncode == 0
        assert f"tap-public-jobs v{VERSION}" in finished.stdout
        built = {path.name for path in (tmp_path / "clone" / "dist").iterdir()} - {".gitignore"}
        assert built == {
            f"tap_public_jobs-{VERSION}-py3-none-any.whl",
            f"tap_public_jobs-{VERSION}.tar.gz",
        }

    @pytest.mark.parametrize(
        ("tag", "heading", "says"),
        [
            ("v9.9.9", f"## [{VERSION}] - 2026-11-22", f"the version {VERSION}"),
            (f"v{VERSION}", f"## [{VERSION}] - not yet released", "no heading"),
            (f"v{VERSION}", "## [9.9.9] - 2026-11-22", "no heading"),
        ],
    )
    def test_it_refuses(self, tmp_path: Path, tag: str, heading: str, says: str) -> None:
        finished = self.run(tmp_path, tag, heading)

        assert finished.returncode == 1
        assert says in finished.stdout


MELTANO = """#!/bin/sh
# Runs a tap and a target as Meltano does, and ends as it does when the tap fails.
trap 'echo "meltano stopped"; kill $tap; exit 3' TERM
{tap} --config x &
tap=$!
echo "target" &
echo "meltano"
wait $tap || {{ echo "tap ended with $?"; exit 1; }}
"""
TAP = """#!/bin/sh
trap 'echo "tap stopped"; exit 143' TERM
echo ready
while true; do read -r _ < {pipe}; done
"""


class TestEntrypoint:
    """The first process of a container gets the signal of `docker stop`."""

    @pytest.mark.parametrize(
        ("tap", "status", "said"),
        [
            pytest.param(
                "tap-public-jobs",
                1,
                ["tap stopped", "tap ended with 143"],
                id="the tap is stopped and meltano ends by itself",
            ),
            pytest.param("another", 3, ["meltano stopped"], id="without a tap meltano is stopped"),
        ],
    )
    def test_a_signal(self, tmp_path: Path, tap: str, status: int, said: list[str]) -> None:
        (tmp_path / "bin").mkdir()
        os.mkfifo(tmp_path / "pipe")
        for name, text in ((tap, TAP), ("meltano", MELTANO)):
            file = tmp_path / "bin" / name
            file.write_text(text.format(tap=tmp_path / "bin" / tap, pipe=tmp_path / "pipe"))
            file.chmod(0o755)
        with subprocess.Popen(
            [REPOSITORY / "docker-entrypoint.sh", "run", "tap", "target"],
            env=os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout
            lines = sorted(process.stdout.readline().strip() for _ in range(3))
            assert lines == ["meltano", "ready", "target"]
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate()

        assert [line for line in output.splitlines() if line in said] == said
        assert process.returncode == status
