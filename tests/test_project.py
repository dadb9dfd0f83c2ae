"""What a release, an image and a page repeat, and must not repeat wrongly."""

import json
import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml
from e2e.pipeline import REPOSITORY, Finished, definition, run

from dev.checks.outdated import HELD, pinned

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
VERSION: str = PROJECT["version"]
ADDRESS: str = PROJECT["urls"]["Repository"]


def texts() -> dict[Path, str]:
    """What the files of the repository hold that are text, but for this one."""
    listed = run("git", "ls-files", "-co", "--exclude-standard", folder=REPOSITORY)
    names = listed.succeeded().output.splitlines()
    paths = {REPOSITORY / name for name in names if not name.endswith(".svg")} - {Path(__file__)}
    return {path: path.read_text("utf-8", errors="replace") for path in paths if path.is_file()}


def test_every_address_of_the_repository_is_the_one_of_the_package() -> None:
    host = re.escape(ADDRESS.partition("://")[2].partition("/")[0])
    owner_and_name = re.compile(rf"{host}/[\w.-]+/[\w-]+")
    found = {address for text in texts().values() for address in owner_and_name.findall(text)}

    assert found == {ADDRESS.partition("://")[2]}


def test_every_address_of_a_file_of_the_repository_is_that_of_one() -> None:
    """The template and the definitions of plugins link to the pages this way."""
    of_a_file = re.compile(rf"{re.escape(ADDRESS)}/(?:blob|raw)/main/([\w./-]+\w)")
    found = {file for text in texts().values() for file in of_a_file.findall(text)}

    assert "docs/operate/on-call.md" in found
    assert [file for file in found if not (REPOSITORY / file).exists()] == []


def test_what_the_package_index_shows_has_no_relative_link() -> None:
    """It has none of the files beside the README."""
    text = metadata("tap-public-jobs").json["description"]
    links = re.findall(r"(?:\]\(|src=\")([^)\"]+)", str(text))

    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    files = [re.sub(rf"^{ADDRESS}/(?:blob|raw)/main/|#.*", "", link) for link in links]
    lost = [it for it in files if "://" not in it and not (REPOSITORY / it).is_file()]
    assert lost == []


def test_every_pin_of_a_package_an_action_and_an_image_is_the_same_everywhere() -> None:
    """So that an update of one, which Dependabot or a workflow proposes, is one of all."""
    pins = {package: {*found} for package, found in pinned().items() if package not in HELD}
    for path, text in texts().items():
        if "workflows" in path.parts:
            for action, commit in re.findall(r"uses: (\S+)@(.+)", text):
                pins.setdefault(action, set()).add(commit)
        if "Dockerfile" in path.name:
            for image, tag in re.findall(r"^FROM (\S+):(\S+)", text, re.MULTILINE):
                pins.setdefault(image, set()).add(tag)

    assert {"meltano", "dbt-core", "actions/checkout", "python"} <= pins.keys()
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}


def test_dependabot_looks_where_there_is_something_to_update() -> None:
    """It looks into no subfolder, and fails each week where it finds nothing."""
    updates = yaml.safe_load((REPOSITORY / ".github/dependabot.yml").read_text("utf-8"))["updates"]
    looks = {it["package-ecosystem"]: it.get("directories", it.get("directory")) for it in updates}
    files = {path.relative_to(REPOSITORY) for path in texts()}
    for ecosystem, name in (("uv", "pyproject.toml"), ("docker", "Dockerfile")):
        assert {f"/{it.parent}".rstrip(".") for it in files if it.name == name} == {
            *looks[ecosystem]
        }


def test_the_tap_is_installed_by_its_name_from_the_first_release_on() -> None:
    """Until then, anybody could take the name on the package index."""
    changelog = (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    released = re.search(r"^## \[.*\] - \d", changelog, re.MULTILINE)
    by_name = re.compile(
        r"(?:pip install|tool install|uvx|pip_url:) +(?:--[\w-]+ +\S+ +)*['\"]?tap-public-jobs.*"
    )
    found = {
        f"{path.name}: {line}"
        for path, text in texts().items()
        if path.name not in {"RELEASING.md", "release.yml"}
        for line in by_name.findall(text)
    }
    minor = VERSION.rpartition(".")[0]

    assert released or found == set()
    assert definition("extractors", "tap-public-jobs")["pip_url"] == (
        f"tap-public-jobs~={minor}.0" if released else "../tap-public-jobs"
    )


def test_a_project_of_the_template_takes_a_python_that_is_tested() -> None:
    setup = (REPOSITORY / "pipeline/template/setup.jinja").read_text("utf-8")
    (first, beyond) = re.findall(r"--python '>=3[.](\d+),<3[.](\d+)'", setup)[0]
    tested = [it.rpartition("3.")[2] for it in PROJECT["classifiers"] if ":: 3." in it]

    assert [*map(str, range(int(first), int(beyond)))] == tested


class TestRelease:
    """The steps of the workflow that need no forge, in a fresh clone."""

    def run(self, folder: Path, tag: str, heading: str) -> Finished:
        clone = folder / "clone"
        run("git", "clone", "--quiet", REPOSITORY, clone, folder=folder).succeeded()
        changelog = clone / "CHANGELOG.md"
        any_heading = rf"^## \[{re.escape(VERSION)}\].*$"
        text = re.sub(any_heading, heading, changelog.read_text("utf-8"), flags=re.MULTILINE)
        changelog.write_text(text, encoding="utf-8")
        workflow = yaml.safe_load((clone / ".github/workflows/release.yml").read_text("utf-8"))
        steps = [step for job in ("build", "check") for step in workflow["jobs"][job]["steps"]]
        scripts = ["unset VIRTUAL_ENV", *(step["run"] for step in steps if "run" in step)]
        command = ["/bin/bash", "-e", "-c", "\n".join(scripts)]
        return run(*command, folder=clone, GITHUB_REF_NAME=tag)

    @pytest.mark.e2e
    def test_it_builds_and_runs_what_is_uploaded(self, tmp_path: Path) -> None:
        finished = self.run(tmp_path, f"v{VERSION}", f"## [{VERSION}] - 2026-11-22")

        assert f"tap-public-jobs v{VERSION}" in finished.succeeded().output
        built = {path.name for path in (tmp_path / "clone" / "dist").iterdir()} - {".gitignore"}
        assert built == {
            f"tap_public_jobs-{VERSION}-py3-none-any.whl",
            f"tap_public_jobs-{VERSION}.tar.gz",
        }
        sbom = json.loads((tmp_path / "clone" / "sbom.cdx.json").read_text("utf-8"))
        assert {"singer-sdk", "requests", "sqlalchemy"} <= {it["name"] for it in sbom["components"]}

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

        assert finished.status == 1
        assert says in finished.output
