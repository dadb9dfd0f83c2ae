"""The settings: their schema, how they are read, and what is wrong with them."""

import json
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from dotenv import load_dotenv
from singer_sdk import typing as th
from singer_sdk.plugin_base import PluginBase

from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import closest
from tap_public_jobs.singer.columns import Json

logger = logging.getLogger(__name__)

# How a variable gets into the tap.
_REMEDY = "list it under `settings` of the plugin in meltano.yml, or use --config=ENV"


class Settings:
    """The settings of one tap. A setting `x_file` may name a file that contains the setting `x`.

    Args:
        tap: Its name, with which its variables begin: those of `tap-name` with TAP_NAME_.
        file: The JSON schema of its own settings.

    Attributes:
        schema: JSON schema of its settings, with those of every SDK tap except BATCH.
        rules: The schema of each setting, by name.
    """

    def __init__(self, tap: str, file: Path) -> None:
        self.schema: dict[str, Json] = json.loads(file.read_text("utf-8"))
        PluginBase.append_builtin_config(self.schema)
        self.rules: dict[str, Json] = self.schema["properties"]
        # What the SDK has here is no schema, and stops the check with a traceback.
        maps = self.rules["stream_maps"]
        maps["properties"].pop("__else__", None)
        maps["additionalProperties"]["anyOf"][-1]["properties"].pop("__else__", None)
        self._prefix = f"{tap.upper().replace('-', '_')}_"
        self._files = {f"{name}_file": name for name in self.rules if f"{name}_file" in self.rules}
        # The SDK reads LOGLEVEL; Meltano's extras have one more underscore.
        self._variable = re.compile(f"{self._prefix}(?!LOGLEVEL|_)(.+)")
        needed = "|".join([*self.schema["required"], *self._files]).upper()
        self._neighbour = re.compile(f"{self._prefix}(.+_)(?:{needed})")

    def from_environment(self) -> dict[str, Json]:
        """Read the settings from environment variables, and from `.env` in the working folder.

        The SDK would look for `.env` above the installed package, prefer it to the environment,
        read a misspelt "ture" as false, and fail on a bad number with a traceback. Here a value
        that does not fit stays text, and an unknown setting is included, for `problems` to name.

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
        return {**self._variables()}

    def with_defaults(self, config: Mapping[str, Json]) -> dict[str, Json]:
        """Fill in what a file contains, and the defaults of settings that are null or empty.

        In a deployment, an empty variable means that the setting is unset. A file that cannot be
        read is left for `problems` to name.
        """
        given = {
            name: _plain(
                _typed(value, self.rules.get(name, {})) if isinstance(value, str) else value
            )
            for name, value in config.items()
            if value not in (None, "")
        }
        for file, name in self._files.items():
            if file in given and name not in given:
                with suppress(OSError, TypeError, ValueError):
                    given[name] = _read(given[file])
                    del given[file]
        defaults = {name: it["default"] for name, it in self.rules.items() if "default" in it}
        return defaults | given

    def secrets(self, config: Mapping[str, Json]) -> list[str]:
        """Return the values that no line of the log may show."""
        names = [name for name, rules in self.rules.items() if "secret" in rules]
        return [str(config[name]) for name in names if config.get(name)]

    def problems(self, config: Mapping[str, Json]) -> list[str]:
        """Describe each setting that is wrong, and warn of unknown ones that have no effect.

        Args:
            config: The settings, with their defaults.
        """
        errors = [*th.DEFAULT_JSONSCHEMA_VALIDATOR(self.schema).iter_errors(config)]
        needed = {
            it for error in errors if error.validator == "required" for it in error.validator_value
        }
        missing = [
            it for it in self.rules if it in needed and not {it, f"{it}_file"} & config.keys()
        ]
        found = [f"{name} is required: set {self._prefix}{name.upper()}." for name in missing]
        if missing:
            files = " or ".join(f"{self._prefix}{file.upper()}" for file in self._files)
            found.append(
                f"Set variables in the environment, or in .env of the working folder ({files} may "
                f"name a file that contains the value); if one is set already, {_REMEDY}."
            )
        for file, name in self._files.items():
            if file in config:  # it was not read
                both = f"and {name} are both set: remove one"
                found.append(f"{file} {both if name in config else _why_not_read(config[file])}.")
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
        for name in sorted(config.keys() - self.rules.keys()):
            if name == "batch_config":  # with it, the SDK would write files, and no records
                found.append(f"{name} is not supported: remove it.")
            elif meant := closest(name, self.rules):
                found.append(f"{name} is not a setting: did you mean {meant}?")
            else:
                logger.warning("%s is not a setting. It has no effect.", name)
        return found

    def warn_of_unused_variables(self, config: Mapping[str, Json]) -> None:
        """Warn of each variable that does not reach the tap: Meltano passes on known settings.

        Others are of stream_maps, as Meltano splits objects up.
        """
        for name in sorted(self._variables().keys() - config.keys()):
            if meant := closest(name, self.rules):
                why = f"{_REMEDY}." if name in self.rules else f"did you mean {meant}?"
                logger.warning("%s%s has no effect: %s", self._prefix, name.upper(), why)

    def _variables(self) -> dict[str, str]:
        """Return the text of each variable that is set, by the name of its setting.

        Variables of another plugin are left out: TAP_NAME_ACME_PAGE_SIZE belongs to `tap-name-acme`
        if that has a setting that every tap of this kind needs, such as TAP_NAME_ACME_API_KEY.
        Meltano exports them to that plugin, beside those of `tap-name`, and two plugins may share
        one `.env`.
        """
        matches = map(self._neighbour.fullmatch, os.environ)
        others = tuple(match[1] for match in matches if match)
        return {
            match[1].lower(): text
            for variable, text in os.environ.items()
            if text
            and (match := self._variable.fullmatch(variable))
            and (match[1].lower() in self.rules or not match[1].startswith(others))
        }


def _read(path: Json) -> str:
    return Path(path).read_text("utf-8-sig").strip()


def _why_not_read(path: Json) -> str:
    """Say why a file cannot be read, without its name, which may be the secret itself."""
    try:
        _read(path)
    except OSError as error:
        return f"must name a file that can be read: {error.strerror}"
    except (TypeError, ValueError):
        pass
    return "must name a file in UTF-8"


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
