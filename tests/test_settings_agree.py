"""The settings are described in several places that have to agree."""

import re
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
from support.plugins import REPOSITORY, definition, plugin

from plugins.settings import OWN, written
from tap_public_jobs.settings import CONFIG_JSONSCHEMA
from tap_public_jobs.tap import TapPublicJobs

Json = Any

REQUIRED: list[str] = CONFIG_JSONSCHEMA["required"]


def extractor() -> dict[str, Json]:
    return plugin("extractors", "tap-public-jobs")


def plugin_definition() -> dict[str, Json]:
    return definition("extractors", "tap-public-jobs")


def numbers(text: str) -> set[float]:
    return {float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}


def bounds(name: str) -> set[float]:
    """The bounds of a setting that a reader needs to know."""
    schema = OWN[name]
    keywords = ("minimum", "exclusiveMinimum", "maximum")
    found = {schema[keyword] for keyword in keywords if keyword in schema}
    # "At least 1" goes without saying where nothing limits the other end.
    return found if "maximum" in schema else set()


@pytest.mark.parametrize("path", written(), ids=lambda it: it.name)
def test_every_place_has_what_the_schema_says(path: Path) -> None:
    """If this fails, run `uv run python plugins/settings.py`."""
    assert path.read_text("utf-8") == written()[path]


class TestMeltano:
    def test_declares_the_capabilities_that_the_tap_reports(self) -> None:
        """Meltano silently skips state and discovery if they are not declared."""
        reported = sorted(it.value for it in TapPublicJobs.capabilities)
        assert sorted(extractor()["capabilities"]) == reported
        assert {"batch", "start-date"}.isdisjoint(reported)

    def test_leaves_values_to_the_tap_and_the_environment(self) -> None:
        assert extractor()["config"] == {"column_naming": "snake_case"}  # a default for warehouses
        assert not [it for it in extractor()["settings"] if "value" in it]


def test_env_example_activates_what_is_required() -> None:
    text = (REPOSITORY / ".env.example").read_text("utf-8")
    active = re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE)

    assert active == [(f"TAP_PUBLIC_JOBS_{name.upper()}", "") for name in REQUIRED]


class TestPluginDefinition:
    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            ("extractors", "tap-public-jobs"),
            *(("loaders", f"target-{it}") for it in ("duckdb", "postgres")),
            *(("utilities", f"dbt-{it}") for it in ("duckdb", "postgres")),
        ],
    )
    def test_is_what_this_project_has(self, kind: str, name: str) -> None:
        """But for a clone of the tap, and for the package of dbt and the command to install it."""
        ours, theirs = plugin(kind, name), definition(kind, name)
        values = {it["name"]: it.pop("value") for it in theirs["settings"] if "value" in it}
        if kind == "extractors":
            ours["pip_url"] = theirs["pip_url"]
        if kind == "utilities":
            assert theirs["commands"].pop("deps")["args"] == "deps"
            package = "$MELTANO_PROJECT_ROOT/transform/dbt_packages/public_jobs"
            ours["config"]["profiles_dir"] = package
        assert values == ours.pop("config")
        assert theirs == theirs | ours

    def test_groups_the_settings_that_are_required(self) -> None:
        assert plugin_definition()["settings_group_validation"] == [
            REQUIRED,
            ["api_key_file", "base_url"],
        ]

    def test_runs_on_the_versions_of_python_that_the_package_names(self) -> None:
        classifiers = metadata("tap-public-jobs").get_all("Classifier") or []
        named = re.findall(
            r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(classifiers), re.MULTILINE
        )

        assert named
        assert plugin_definition()["supported_python_versions"] == named

    def test_has_what_the_hub_requires_and_nothing_of_a_project(self) -> None:
        """The schema of Meltano's Hub refuses `config`, `env` and `python`."""
        definition = plugin_definition()

        required = {"name", "namespace", "variant", "label", "quality"}
        assert required | {"docs", "repo"} <= definition.keys()
        assert not {"config", "env", "python"} & definition.keys()


class TestDescriptions:
    """`--about --format=markdown` prints nothing else of what is allowed."""

    @pytest.mark.parametrize("name", [name for name in OWN if bounds(name)])
    def test_name_the_bounds(self, name: str) -> None:
        assert bounds(name) <= numbers(OWN[name]["description"])

    @pytest.mark.parametrize("name", [name for name, rules in OWN.items() if "enum" in rules])
    def test_name_the_options(self, name: str) -> None:
        assert [it for it in OWN[name]["enum"] if it not in OWN[name]["description"]] == []
