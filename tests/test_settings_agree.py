"""The settings are described in five places that have to agree."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from pages.settings import PAGE, page
from tap_public_jobs.settings import CONFIG_JSONSCHEMA
from tap_public_jobs.tap import TapPublicJobs

Json = Any

REPOSITORY = Path(__file__).parents[1]
PREFIX = "TAP_PUBLIC_JOBS_"


def of_the_sdk() -> dict[str, dict[str, Json]]:
    """The settings that the SDK adds to those of every tap."""
    schema: dict[str, Json] = {"properties": {}}
    TapPublicJobs.append_builtin_config(schema)
    added: dict[str, dict[str, Json]] = schema["properties"]
    return added


SDK = of_the_sdk()
# The SDK adds its settings in place, so that they are in the tap's schema once a tap was made.
OWN = {name: sub for name, sub in CONFIG_JSONSCHEMA["properties"].items() if name not in SDK}
ALL = OWN | SDK
REQUIRED: list[str] = CONFIG_JSONSCHEMA["required"]
WITH_DEFAULT = [name for name in OWN if "default" in OWN[name]]
WITH_BOUNDS = [name for name in OWN if {"minimum", "maximum"} & OWN[name].keys()]


def extractor() -> dict[str, Json]:
    project = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))
    (plugin,) = project["plugins"]["extractors"]
    found: dict[str, Json] = plugin
    return found


def in_meltano() -> dict[str, dict[str, Json]]:
    return {setting["name"]: setting for setting in extractor()["settings"]}


def in_env_example() -> dict[str, tuple[bool, str, str]]:
    """The tap's variables: whether each is active, its value, and the comment above it."""
    text = (REPOSITORY / ".env.example").read_text("utf-8")
    found = re.findall(rf"((?:^# .*\n)*?)^(# )?{PREFIX}(\w+)=(.*)$", text, re.MULTILINE)
    return {name.lower(): (not off, value, comment) for comment, off, name, value in found}


def plugin_definition() -> dict[str, Json]:
    """What `meltano add --from-ref` puts into a project."""
    path = REPOSITORY / "plugins" / "extractors" / "tap-public-jobs.yml"
    found: dict[str, Json] = yaml.safe_load(path.read_text("utf-8"))
    return found


def on_the_page() -> dict[str, tuple[str, str]]:
    """The tables of docs/settings.md: the variable, and what is allowed, of each setting."""
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: (variable, allowed) for name, variable, allowed in rows}


def numbers(text: str) -> set[float]:
    return {float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}


def bounds(name: str) -> set[float]:
    """The bounds of a setting that a reader needs to know."""
    schema = OWN[name]
    found = {schema[keyword] for keyword in ("minimum", "maximum") if keyword in schema}
    # "At least 1" goes without saying where nothing limits the other end.
    return found if "maximum" in schema else set()


def as_text(default: Json) -> str:
    return default if isinstance(default, str) else json.dumps(default)


class TestMeltano:
    def test_lists_every_setting_in_the_order_of_the_schema(self) -> None:
        """Meltano ignores the environment variable of a setting that is not listed."""
        assert list(in_meltano()) == list(ALL)

    def test_declares_the_capabilities_that_the_tap_reports(self) -> None:
        """Meltano silently skips state and discovery if they are not declared."""
        assert extractor()["capabilities"] == [it.value for it in TapPublicJobs.capabilities]

    @pytest.mark.parametrize("name", ALL)
    def test_kind(self, name: str) -> None:
        kinds = {
            "string": "string",
            "integer": "integer",
            "boolean": "boolean",
            "object": "object",
            # Meltano 4 cannot write a value of kind `decimal` to the tap's configuration.
            "number": "integer",
        }
        (kind,) = {kinds[kind] for kind in ALL[name]["type"] if kind != "null"}
        assert in_meltano()[name]["kind"] == ("options" if "enum" in ALL[name] else kind)

    @pytest.mark.parametrize("name", ALL)
    def test_options(self, name: str) -> None:
        options = in_meltano()[name].get("options", [])
        assert [option["value"] for option in options] == ALL[name].get("enum", [])

    @pytest.mark.parametrize("name", ALL)
    def test_secrets_are_redacted(self, name: str) -> None:
        assert in_meltano()[name].get("sensitive", False) == ALL[name].get("secret", False)

    @pytest.mark.parametrize("name", OWN)
    def test_words(self, name: str) -> None:
        setting = in_meltano()[name]
        words = (setting["label"], setting["description"])
        assert words == (OWN[name]["title"], OWN[name]["description"])

    @pytest.mark.parametrize("name", SDK)
    def test_words_for_settings_of_the_sdk(self, name: str) -> None:
        assert in_meltano()[name]["label"] == ALL[name]["title"]
        assert in_meltano()[name]["description"]

    def test_leaves_values_to_the_tap_and_the_environment(self) -> None:
        assert extractor()["config"] == {"column_naming": "snake_case"}  # a default for warehouses
        assert not [name for name, setting in in_meltano().items() if "value" in setting]


class TestEnvExample:
    def test_names_every_setting_of_the_tap_in_the_order_of_the_schema(self) -> None:
        assert list(in_env_example()) == list(OWN)

    @pytest.mark.parametrize("name", OWN)
    def test_only_what_is_required_is_active_and_it_is_empty(self, name: str) -> None:
        active, value, _ = in_env_example()[name]
        assert active == (name in REQUIRED)
        assert not (active and value)

    @pytest.mark.parametrize("name", [name for name in OWN if name not in REQUIRED])
    def test_shows_the_default(self, name: str) -> None:
        _, value, _ = in_env_example()[name]
        assert value == (as_text(OWN[name]["default"]) if name in WITH_DEFAULT else "")

    @pytest.mark.parametrize("name", OWN)
    def test_has_a_comment_with_the_allowed_values(self, name: str) -> None:
        _, _, comment = in_env_example()[name]
        assert comment
        assert bounds(name) <= numbers(comment)
        assert all(option in comment for option in OWN[name].get("enum", []))

    def test_every_other_variable_is_a_setting_of_a_loader_or_read_by_dbt(self) -> None:
        project = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))
        known = {
            f"{loader['namespace']}_{setting['name']}".upper()
            for loader in project["plugins"]["loaders"]
            for setting in loader["settings"]
        }
        for file in ("dbt_project.yml", "macros/raw.sql"):
            dbt = (REPOSITORY / "transform" / file).read_text("utf-8")
            known.update(re.findall(r"env_var\('(\w+)'", dbt))
        text = (REPOSITORY / ".env.example").read_text("utf-8")
        named = set(re.findall(r"^(?:# )?([A-Z_]+)=", text, re.MULTILINE))
        assert {name for name in named if not name.startswith(PREFIX)} <= known


class TestPluginDefinition:
    @pytest.mark.parametrize("key", ["name", "namespace", "executable", "capabilities"])
    def test_is_the_extractor_of_this_project(self, key: str) -> None:
        assert plugin_definition()[key] == extractor()[key]

    def test_has_the_settings_of_this_project(self) -> None:
        """And the default that this project sets in `config:`."""
        defaults = extractor()["config"]
        assert plugin_definition()["settings"] == [
            setting | ({"value": defaults[name]} if name in defaults else {})
            for name, setting in in_meltano().items()
        ]

    def test_agrees_with_about(self) -> None:
        """`tap-public-jobs --about --format=json`."""
        about = TapPublicJobs._get_about_info()
        definition = plugin_definition()

        assert definition["name"] == about.name
        assert definition["capabilities"] == [it.value for it in about.capabilities]
        names = [setting["name"] for setting in definition["settings"]]
        assert names == list(about.settings["properties"])

    def test_groups_the_settings_that_are_required(self) -> None:
        assert plugin_definition()["settings_group_validation"] == [REQUIRED]

    def test_installs_this_version(self) -> None:
        minor = ".".join(version("tap-public-jobs").split(".")[:2])
        assert plugin_definition()["pip_url"] == f"tap-public-jobs~={minor}.0"

    def test_has_what_the_hub_requires_and_nothing_of_a_project(self) -> None:
        """The schema of Meltano's Hub refuses `config`, `env` and `python`."""
        definition = plugin_definition()

        required = {"name", "namespace", "variant", "label", "quality"}
        assert required | {"docs", "repo"} <= definition.keys()
        assert not {"config", "env", "python"} & definition.keys()


class TestDescriptions:
    """`--about --format=markdown` prints nothing else of what is allowed."""

    @pytest.mark.parametrize("name", OWN)
    def test_name_the_allowed_values(self, name: str) -> None:
        words = OWN[name]["description"]
        assert bounds(name) <= numbers(words)
        assert all(option in words for option in OWN[name].get("enum", []))


class TestSettingsPage:
    def test_is_current(self) -> None:
        """If this fails, run `python -m pages.settings`."""
        assert PAGE.read_text("utf-8") == page()

    def test_lists_every_setting_and_its_variable(self) -> None:
        assert on_the_page().keys() == ALL.keys()
        for name, (variable, _) in on_the_page().items():
            assert variable == f"{PREFIX}{name.upper()}"

    @pytest.mark.parametrize("name", WITH_DEFAULT)
    def test_default(self, name: str) -> None:
        assert f"default `{as_text(OWN[name]['default'])}`" in on_the_page()[name][1]

    @pytest.mark.parametrize("name", REQUIRED)
    def test_required(self, name: str) -> None:
        assert "required" in on_the_page()[name][1]

    @pytest.mark.parametrize("name", WITH_BOUNDS)
    def test_range(self, name: str) -> None:
        assert bounds(name) <= numbers(on_the_page()[name][1])

    @pytest.mark.parametrize("name", [name for name in OWN if "enum" in OWN[name]])
    def test_options(self, name: str) -> None:
        assert all(f"`{option}`" in on_the_page()[name][1] for option in OWN[name]["enum"])
