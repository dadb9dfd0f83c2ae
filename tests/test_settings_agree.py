"""The settings are described in several places that have to agree."""

from __future__ import annotations

import json
import re
from importlib.metadata import metadata
from typing import Any

import pytest
from singer_sdk.about import AboutFormatter
from support.plugins import REPOSITORY, definition, plugin

from tap_public_jobs.settings import CONFIG_JSONSCHEMA
from tap_public_jobs.tap import TapPublicJobs

Json = Any

PREFIX = "TAP_PUBLIC_JOBS_"


ALL = dict(CONFIG_JSONSCHEMA["properties"])
# The SDK adds the others.
OWN_NAMES = json.loads((REPOSITORY / "tap_public_jobs/settings.json").read_text("utf-8"))
OWN = {name: ALL[name] for name in OWN_NAMES["properties"]}
REQUIRED: list[str] = CONFIG_JSONSCHEMA["required"]


def extractor() -> dict[str, Json]:
    return plugin("extractors", "tap-public-jobs")


def plugin_definition() -> dict[str, Json]:
    return definition("extractors", "tap-public-jobs")


def in_meltano() -> dict[str, dict[str, Json]]:
    return {setting["name"]: setting for setting in extractor()["settings"]}


def numbers(text: str) -> set[float]:
    return {float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}


def bounds(name: str) -> set[float]:
    """The bounds of a setting that a reader needs to know."""
    schema = OWN[name]
    keywords = ("minimum", "exclusiveMinimum", "maximum")
    found = {schema[keyword] for keyword in keywords if keyword in schema}
    # "At least 1" goes without saying where nothing limits the other end.
    return found if "maximum" in schema else set()


class TestMeltano:
    def test_lists_every_setting_in_the_order_of_the_schema(self) -> None:
        """Meltano ignores the environment variable of a setting that is not listed."""
        assert [*in_meltano()] == [*ALL]

    def test_declares_the_capabilities_that_the_tap_reports(self) -> None:
        """Meltano silently skips state and discovery if they are not declared."""
        reported = sorted(it.value for it in TapPublicJobs.capabilities)
        assert sorted(extractor()["capabilities"]) == reported
        assert {"batch", "start-date"}.isdisjoint(reported)

    @pytest.mark.parametrize("name", ALL)
    def test_describes_each_setting_as_the_schema_does(self, name: str) -> None:
        schema, described = ALL[name], in_meltano()[name]
        # Meltano 4 cannot write a value of kind `decimal` to the tap's configuration.
        (kind,) = {"integer" if it == "number" else it for it in schema["type"] if it != "null"}
        options = {"options": [{"label": it, "value": it} for it in schema.get("enum", [])]}
        expected = {
            "name": name,
            "kind": "options" if "enum" in schema else kind,
            "label": described["label"],
            "description": schema["description"] if name in OWN else described["description"],
        }
        expected |= options if "enum" in schema else {}
        expected |= {"sensitive": True} if schema.get("secret") else {}
        assert described == expected

    def test_leaves_values_to_the_tap_and_the_environment(self) -> None:
        assert extractor()["config"] == {"column_naming": "snake_case"}  # a default for warehouses
        assert not [name for name, setting in in_meltano().items() if "value" in setting]


def test_env_example_names_every_setting_of_the_tap_in_the_order_of_the_schema() -> None:
    """Only what is required is active, and it is empty."""
    text = (REPOSITORY / ".env.example").read_text("utf-8")

    found = re.findall(rf"^(# )?{PREFIX}(\w+)=", text, re.MULTILINE)
    assert [name.lower() for _, name in found] == list(OWN)
    assert re.findall(rf"^{PREFIX}(\w+)=$", text, re.MULTILINE) == [it.upper() for it in REQUIRED]
    assert [name.lower() for off, name in found if not off] == REQUIRED


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


def test_the_settings_page_has_the_table_that_the_tap_prints() -> None:
    """If this fails, copy it: `tap-public-jobs --about --format=markdown`."""
    printed = AboutFormatter.get_formatter("markdown").format_about(TapPublicJobs._get_about_info())
    table = [line for line in printed.splitlines() if line.startswith("| ")]

    page = (REPOSITORY / "docs" / "settings.md").read_text("utf-8")
    assert len(table) > len(ALL)
    assert "\n".join(table[1:]) in page
