"""The settings: their schema, how they are read, and what is wrong with them."""

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from dotenv import load_dotenv
from singer_sdk import typing as th
from singer_sdk.plugin_base import PluginBase

from tap_public_jobs import schemas
from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import closest, quoted
from tap_public_jobs.singer.columns import KEYS, Json
from tap_public_jobs.singer.naming import field_of

logger = logging.getLogger(__name__)

# A variable of a setting. The SDK reads LOGLEVEL; Meltano's extras have one more underscore.
_VARIABLE = re.compile("TAP_PUBLIC_JOBS_(?!LOGLEVEL|_)(.+)")
_NEIGHBOUR = re.compile("TAP_PUBLIC_JOBS_(.+_)(?:API_KEY|API_KEY_FILE|BASE_URL)")

# JSON schema of the settings: the tap's own, and those of every SDK tap except BATCH.
CONFIG_JSONSCHEMA: dict[str, Json] = json.loads(
    Path(__file__).with_name("settings.json").read_text("utf-8")
)
PluginBase.append_builtin_config(CONFIG_JSONSCHEMA)
SETTINGS: dict[str, Json] = CONFIG_JSONSCHEMA["properties"]
# What the SDK has here is no schema, and stops the check with a traceback.
SETTINGS["stream_maps"]["properties"].pop("__else__", None)
SETTINGS["stream_maps"]["additionalProperties"]["anyOf"][-1]["properties"].pop("__else__", None)

# What a field without a column of its own is a part of.
OTHERS = re.compile("additional(Fields|_fields)[.]")

# The fields of all streams.
FIELDS = {
    name
    for file in Path(schemas.__file__).parent.glob("*.json")
    for name in json.loads(file.read_text("utf-8"))["properties"]
}

# How a variable gets into the tap, and where it may be.
_REMEDY = "list it under `settings` of the plugin in meltano.yml, or use --config=ENV"
_PLACES = (
    "Set variables in the environment, or in .env of the working folder (TAP_PUBLIC_JOBS_API_KEY_"
    f"FILE may name a file that contains the key); if one is set already, {_REMEDY}."
)


def from_environment() -> dict[str, Json]:
    """Read the settings from environment variables, and from `.env` in the working folder.

    The SDK would look for `.env` above the installed package, prefer it to the environment, read a
    misspelt "ture" as false, and fail on a bad number with a traceback. Here a value that does not
    fit stays text, and an unknown setting is included, for `problems` to name.

    Raises:
        SetupError: `.env` is not in UTF-8, or cannot be read.
    """
    try:
        load_dotenv(".env", encoding="utf-8-sig")
    except OSError as error:
        msg = f"The file .env cannot be read: {error.strerror}."
        raise SetupError(msg) from error
    except ValueError as error:
        msg = "The file .env is not in UTF-8: save it in that encoding."
        raise SetupError(msg) from error
    return {**_variables()}


def with_defaults(config: Mapping[str, Json]) -> dict[str, Json]:
    """Fill in the defaults of settings that are missing, null or empty, and the key from its file.

    In a deployment, an empty variable means that the setting is unset. A file that cannot be read
    is left for `problems` to name.
    """
    given = {
        name: _plain(_typed(value, SETTINGS.get(name, {})) if isinstance(value, str) else value)
        for name, value in config.items()
        if value not in (None, "")
    }
    if "api_key" not in given:
        with suppress(KeyError, OSError, TypeError, ValueError):
            given["api_key"] = Path(given["api_key_file"]).read_text("utf-8-sig").strip()
            del given["api_key_file"]
    defaults = {name: rules["default"] for name, rules in SETTINGS.items() if "default" in rules}
    return defaults | given


def secrets(config: Mapping[str, Json]) -> list[str]:
    """Return the values that no line of the log may show."""
    names = [name for name, rules in SETTINGS.items() if "secret" in rules]
    return [str(config[name]) for name in names if config.get(name)]


def problems(config: Mapping[str, Json]) -> list[str]:
    """Describe each setting that is wrong, and warn of unknown ones that have no effect.

    Args:
        config: The settings, with their defaults.
    """
    errors = [*th.DEFAULT_JSONSCHEMA_VALIDATOR(CONFIG_JSONSCHEMA).iter_errors(config)]
    required = {name for it in errors if it.validator == "required" for name in it.validator_value}
    if "api_key_file" in config:  # it was not read
        required.discard("api_key")
    missing = [name for name in SETTINGS if name in required and name not in config]
    found = [f"{name} is required: set TAP_PUBLIC_JOBS_{name.upper()}." for name in missing]
    found += [_PLACES] if missing else []
    if "api_key_file" in config:
        found.append(f"api_key_file {_why_not_read(config)}.")
    rules: dict[str, str] = {}  # the first that each setting breaks
    for error in filter(lambda error: error.path, errors):
        # A text that may be the key, or a header with it, is not quoted.
        if error.validator == "pattern":
            rule = f" {error.schema['description']}."
        elif error.validator == "enum":
            rule = f" must be one of {error.validator_value}."
        else:
            rule = f": {error.message}.".replace(", 'null'", "")
        rules.setdefault(error.path[0], f"{error.path[0]}{rule}")
    found += rules.values()
    for setting in {"ignored_fields", "withheld_fields"} - rules.keys():
        found += _wrong_fields(setting, config[setting])
    for name in sorted(config.keys() - SETTINGS.keys()):
        if name == "batch_config":
            found.append(f"{name} is not supported: remove it.")
        elif (meant := _or_meant(name)) != ".":
            found.append(f"{name} is not a setting{meant}")
        else:
            logger.warning("%s is not a setting. It has no effect.", name)
    return found


def _wrong_fields(setting: str, names: list[str]) -> Iterator[str]:
    for name in names:
        if field_of(name) in KEYS:
            yield f"{setting} must not have id or publicId, which say which job it is: remove it."
        elif setting == "withheld_fields" and not (OTHERS.match(name) or field_of(name) in FIELDS):
            meant = closest(name, FIELDS)
            yield f"{setting}: no stream has {quoted(name)}{f', but {meant}' if meant else ''}."


def _or_meant(name: str) -> str:
    meant = closest(name, SETTINGS)
    return f": did you mean {meant}?" if meant else "."


def _why_not_read(config: Mapping[str, Json]) -> str:
    """Say why the key was not read from its file, without its name, which may be the key itself."""
    if "api_key" in config:
        return "and api_key are both set: remove one"
    why: str | None = "it is no path"
    try:
        with suppress(TypeError):
            Path(config["api_key_file"]).read_text("utf-8-sig")
    except OSError as error:
        why = error.strerror
    except ValueError:
        why = "it is not in UTF-8"
    return f"must name a file that can be read: {why}"


def warn_of_unused_variables(config: Mapping[str, Json]) -> None:
    """Warn of each variable that does not reach the tap: Meltano passes on only known settings."""
    for name in sorted(_variables().keys() - config.keys()):
        why = f": {_REMEDY}." if name in SETTINGS else _or_meant(name)
        if name in SETTINGS or why != ".":  # else of stream_maps, as Meltano splits objects up
            logger.warning("TAP_PUBLIC_JOBS_%s has no effect%s", name.upper(), why)


def _variables() -> dict[str, str]:
    """Return the text of each variable that is set, by the name of its setting.

    Variables of another plugin are left out: TAP_PUBLIC_JOBS_ACME_PAGE_SIZE belongs to
    `tap-public-jobs-acme` if there is a TAP_PUBLIC_JOBS_ACME_API_KEY, too. Meltano exports them to
    that plugin, beside those of `tap-public-jobs`, and two plugins may share one `.env`.
    """
    others = tuple(match[1] for match in map(_NEIGHBOUR.fullmatch, os.environ) if match)
    return {
        match[1].lower(): text
        for variable, text in os.environ.items()
        if text
        and (match := _VARIABLE.fullmatch(variable))
        and (match[1].lower() in SETTINGS or not match[1].startswith(others))
    }


def _typed(text: str, schema: Mapping[str, Json]) -> Json:
    types = schema.get("type", ["string"])
    if "boolean" in types:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if "string" not in types:
        with suppress(RecursionError, ValueError):
            return json.loads(text, parse_constant=str)  # JSON has no NaN; no limit refuses it
    return text


def _plain(value: Json) -> Json:
    # The SDK reads the fractions of a file as decimals, which clocks and sockets do not accept.
    number = float(value) if isinstance(value, Decimal) else value
    return int(number) if isinstance(number, float) and number.is_integer() else number
