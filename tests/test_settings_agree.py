"""The settings are described in four places that have to agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

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


def in_readme() -> dict[str, str]:
    """The table under `## Settings`: the type and default of each setting."""
    text = (REPOSITORY / "README.md").read_text("utf-8")
    _, _, section = text.partition("\n## Settings\n")
    section, _, _ = section.partition("\n## ")
    return dict(re.findall(r"^\| *`(\w+)` *\| *([^|]*?) *\|", section, re.MULTILINE))


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

    def test_every_other_variable_is_a_setting_of_a_loader(self) -> None:
        project = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))
        known = {
            f"{loader['namespace']}_{setting['name']}".upper()
            for loader in project["plugins"]["loaders"]
            for setting in loader["settings"]
        }
        text = (REPOSITORY / ".env.example").read_text("utf-8")
        named = set(re.findall(r"^(?:# )?([A-Z_]+)=", text, re.MULTILINE))
        assert {name for name in named if not name.startswith(PREFIX)} <= known


class TestReadme:
    def test_lists_every_setting_of_the_tap(self) -> None:
        assert set(in_readme()) == set(OWN)

    @pytest.mark.parametrize("name", WITH_DEFAULT)
    def test_default(self, name: str) -> None:
        default = as_text(OWN[name]["default"])
        assert re.search(rf"(?<![\w.-]){re.escape(default)}(?![\w-])", in_readme()[name])

    @pytest.mark.parametrize("name", REQUIRED)
    def test_required(self, name: str) -> None:
        assert "required" in in_readme()[name]

    @pytest.mark.parametrize("name", WITH_BOUNDS)
    def test_range(self, name: str) -> None:
        assert bounds(name) <= numbers(in_readme()[name])

    @pytest.mark.parametrize("name", [name for name in OWN if "enum" in OWN[name]])
    def test_options(self, name: str) -> None:
        assert all(option in in_readme()[name] for option in OWN[name]["enum"])
