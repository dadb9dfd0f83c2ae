"""The settings: their schema, how they are read, and what is wrong with them."""

import io
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from dotenv import load_dotenv
from dotenv.parser import parse_stream
from singer_sdk import typing as th
from singer_sdk.plugin_base import PluginBase

from tap_public_jobs.api.models import KEYS, Json
from tap_public_jobs.api.transport import AUTH_HEADERS
from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import closest
from tap_public_jobs.records.naming import field_of

logger = logging.getLogger(__name__)

# A variable of a setting. The SDK reads LOGLEVEL; Meltano's extras have one more underscore.
_VARIABLE = re.compile("TAP_PUBLIC_JOBS_(?!LOGLEVEL|_)(.+)")
_NEIGHBOUR = re.compile("TAP_PUBLIC_JOBS_(.+_)(?:API_KEY|API_KEY_FILE|BASE_URL)")
_MISTYPED = re.compile("(?!TAP_PUBLIC_JOBS_)(?:(?i:TAP)[_-]?)?(?i:PUBLIC)[_-]?(?i:JOBS?)[_-](.+)")

# JSON schema of the settings: the tap's own, and those of every SDK tap except BATCH.
CONFIG_JSONSCHEMA: dict[str, Json] = json.loads(
    Path(__file__).with_name("settings.json").read_text("utf-8")
)
CONFIG_JSONSCHEMA["properties"]["auth_header"]["enum"] = [*AUTH_HEADERS]
PluginBase.append_builtin_config(CONFIG_JSONSCHEMA)
SETTINGS: dict[str, Json] = CONFIG_JSONSCHEMA["properties"]
# What the SDK has here is no schema, and stops the check with a traceback.
SETTINGS["stream_maps"]["properties"].pop("__else__", None)
SETTINGS["stream_maps"]["additionalProperties"]["anyOf"][-1]["properties"].pop("__else__", None)

# What Meltano does with streams and columns itself, if it is written where extras belong.
_EXTRAS = ("catalog", "metadata", "schema", "select", "select_filter", "state")
_CHOOSING = {"metadata", "select", "select_filter"}
_OWN_EXTRAS = {*_EXTRAS, "load_schema", "log_parser", "use_cached_catalog"}
_EXTRA = "MELTANO_EXTRACT__"

KEYS_IGNORED = (
    "ignored_fields must not have id or publicId, because a detail is requested by its publicId "
    "and must be fetched again when that changes: remove it."
)

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
        SetupError: `.env` is not in UTF-8, or cannot be read, or a line with a setting cannot.
    """
    try:
        if Path(".env").is_file():
            _check_lines(Path(".env").read_text("utf-8-sig"))
        load_dotenv(".env", encoding="utf-8-sig")
    except OSError as error:
        msg = f"The file .env cannot be read: {error.strerror}."
        raise SetupError(msg) from error
    except ValueError as error:
        msg = "The file .env is not in UTF-8: save it in that encoding."
        raise SetupError(msg) from error
    return {**_variables()}


def _check_lines(text: str) -> None:
    """Refuse a line of `.env` that would be passed over, such as JSON between double quotes."""
    for line in parse_stream(io.StringIO(text)):
        if line.error and "PUBLIC_JOBS" in line.original.string:
            msg = f"Line {line.original.line} of .env is not NAME=value, where JSON has no quotes."
            raise SetupError(msg)


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
    if "ignored_fields" not in rules and {*KEYS} & {*map(field_of, config["ignored_fields"])}:
        found.append(KEYS_IGNORED)
    for name in sorted(config.keys() - SETTINGS.keys()):
        if name == "batch_config":
            found.append(f"{name} is not supported: remove it.")
        elif unknown := _meant(name):
            found.insert(0, unknown)
        else:
            logger.warning("%s is not a setting. It has no effect.", name)
    return [*_misplaced_extras(), *found]


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


def unused_variables(config: Mapping[str, Json]) -> list[str]:
    """Warn of each variable that does not reach the tap: Meltano passes on only known settings.

    Args:
        config: The settings as they reached the tap, without defaults.

    Returns:
        What is wrong with those that choose streams or columns, which would all be written.
    """
    exported = {it for name, value in config.items() for it in _variables_of(name, value)}
    wrong = []
    for name in sorted(_variables().keys() - exported):
        meant = "" if name in SETTINGS else _meant(name)
        why = meant or (f"{_REMEDY}." if name in SETTINGS else f"{name} is not a setting.")
        says = f"TAP_PUBLIC_JOBS_{name.upper()} has no effect: {why}"
        if meant and not meant.endswith("?"):
            wrong.append(says)
        else:
            logger.warning("%s", says)
    for match in filter(None, map(_MISTYPED.fullmatch, os.environ)):
        name = re.sub("[^a-z0-9]", "_", match[1].lower())
        if name in SETTINGS or name.removeprefix("_") in _EXTRAS:
            name = name.removeprefix("_")
            right = f"TAP_PUBLIC_JOBS_{'_' * (name not in SETTINGS)}{name.upper()}"
            says = f"{match[0]} has no effect: did you mean {right}?"
            if name in {"stream_maps", *_CHOOSING}:
                wrong.append(says)
            else:
                logger.warning("%s", says)
    return wrong


def _variables_of(name: str, value: Json) -> Iterator[str]:
    """Yield a setting and the parts of an object for which Meltano sets a variable of its own."""
    yield re.sub(r"[^a-z0-9]", "_", name.lower())
    for key, part in value.items() if isinstance(value, dict) else ():
        yield from _variables_of(f"{name}_{key}", part)


def _meant(name: str) -> str:
    """Say what an unknown setting probably means; empty if it is none that is misspelt."""
    name = re.sub("(?i)^tap_public_jobs_", "", name)  # a variable, where a setting belongs
    for whole, rules in SETTINGS.items():
        if re.match(f"{whole}[_.]", name) and "object" in rules.get("type", ()):
            variable = f"TAP_PUBLIC_JOBS_{whole.upper()}"
            return f"{whole} is one object: write it into meltano.yml, or as JSON into {variable}."
    meant = closest(name, [*SETTINGS, *_EXTRAS])
    if meant in _EXTRAS:
        it = "an extra of Meltano's" if name == meant else f"{meant} is an extra of Meltano's"
        return (
            f"{name} is no setting of the tap, but {it}: write it beside `config` of the plugin, "
            f"not under it, or set TAP_PUBLIC_JOBS__{meant.upper()}, with two underscores."
        )
    return f"{name} is not a setting: did you mean {meant}?" if meant else ""


def _misplaced_extras() -> Iterator[str]:
    """Describe what chooses streams or columns in a place where nothing reads it.

    Meltano exports what stands beside `config` of the plugin as extras, and takes any name for one:
    settings, too, and misspelt extras. Of an object, it may export the parts alone.
    """
    exported = [it.removeprefix(_EXTRA).lower() for it in os.environ if it.startswith(_EXTRA)]
    for name in exported:
        parts = _beginnings(name)
        if _OWN_EXTRAS.isdisjoint(parts):
            if whole := next(filter(SETTINGS.__contains__, parts), ""):
                yield f"{whole} is a setting: write it under `config` of the plugin, not beside it."
            elif meant := next(filter(None, (closest(it, _EXTRAS, 0.85) for it in parts)), ""):
                yield f"Meltano has no extra {name}: did you mean {meant}?"
    for variable in sorted(it for it in os.environ if it.startswith("TAP_PUBLIC_JOBS__")):
        name = variable.removeprefix("TAP_PUBLIC_JOBS__").lower()
        is_choice = not _CHOOSING.isdisjoint(_beginnings(name))  # else of tap-public-jobs--acme
        if is_choice and name not in exported and os.environ[variable]:
            where = "write the whole one as JSON" if exported else "choose in --catalog"
            yield f"{variable} has no effect here: {where}."


def _beginnings(name: str) -> list[str]:
    """Return a name, and what is left of it without its last words."""
    words = name.split("_")
    return ["_".join(words[:number]) for number in range(len(words), 0, -1)]


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
