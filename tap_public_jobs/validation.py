"""What is wrong with a setting, in one sentence that names the remedy."""

from __future__ import annotations

import difflib
import ipaddress
import json
import logging
import math
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

from tap_public_jobs.api.client import API_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

logger = logging.getLogger(__name__)

Json = Any

_REMEDIES = {
    "api_key": "create a key in the portal under Settings → Integrations → API keys; if it is set, "
    "make sure that meltano.yml lists api_key under settings, and that .env is beside meltano.yml",
    "base_url": "the address of the API, such as https://jobs.example.com",
}


def problems(config: Mapping[str, Json], schema: Mapping[str, Json]) -> list[str]:
    """Find everything that is wrong with the settings.

    Args:
        config: The settings, with their defaults.
        schema: JSON schema of all settings, the SDK's own included.

    Returns:
        A sentence for each wrong setting: its name, what is allowed, and the remedy. Values of
        secret settings are not in it.
    """
    found = _schema_problems(config, schema)
    for name, value in config.items():
        if name == "batch_config":
            found[name] = (
                "batch_config is not supported: files carry no version, so rows of unpublished "
                "jobs could not be removed; remove the setting"
            )
        elif name not in schema["properties"]:
            found.update(_unknown(name, schema["properties"]))
        elif isinstance(value, float) and not math.isfinite(value):
            found[name] = _wrong_value(name, value, schema["properties"][name])
    for name, check in _CHECKS.items():
        if isinstance(config.get(name), str) and name not in found:
            found.update((name, f"{name} {problem}") for problem in check(config[name]))
    if config.get("detail_refresh") == "notified" and "changes_url" not in config:
        found["changes_url"] = (
            "detail_refresh: notified needs changes_url, the address of the log that "
            "public-jobs-webhook fills"
        )
    return list(found.values())


def unused_variables(
    config: Mapping[str, Json],
    schema: Mapping[str, Json],
    environment: Mapping[str, str],
    prefix: str,
) -> Iterator[str]:
    """Find variables of the tap that have no effect on this run.

    Meltano passes only the settings that it knows, and silently ignores the others.

    Args:
        config: The settings as they reached the tap, without defaults.
        schema: JSON schema of all settings, the SDK's own included.
        environment: The environment variables.
        prefix: What the names of the tap's variables begin with.

    Yields:
        A sentence for each: the variable, why it has no effect, and the remedy.
    """
    known = schema["properties"]
    # Meltano also sets a variable for each key of an object, such as STREAM_MAPS_JOBS.
    nested = tuple(f"{name}_" for name in known if "object" in known[name].get("type", []))
    for variable, text in environment.items():
        name = variable.removeprefix(prefix).lower()
        is_own = variable.startswith(prefix) and not name.startswith(("_", "loglevel", *nested))
        if not is_own or not text or name in config:
            continue
        if name in known:
            yield (
                f"{variable} has no effect: list {name} under `settings` of the plugin in "
                "meltano.yml, or run the tap with --config=ENV."
            )
        else:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {prefix}{close[0].upper()}?" if close else "remove it."
            yield f"{variable} has no effect, because {name} is not a setting: {meant}"


def _schema_problems(config: Mapping[str, Json], schema: Mapping[str, Json]) -> dict[str, str]:
    properties = schema["properties"]
    found: dict[str, str] = {}
    for error in DEFAULT_JSONSCHEMA_VALIDATOR(schema).iter_errors(config):
        if error.validator == "required" and not error.path:
            for name in set(error.validator_value) - config.keys():
                found[name] = f"{name} is required: {_REMEDIES[name]}"
        else:
            name, *inner = error.path
            found[name] = (
                f"{name} must have {error.validator} {error.validator_value} at {inner}"
                if inner or not _allowed(properties[name])
                else _wrong_value(name, config[name], properties[name])
            )
    return found


def _wrong_value(name: str, value: Json, schema: Mapping[str, Json]) -> str:
    shown = "" if schema.get("secret") else f", not {json.dumps(value, default=str)[:100]}"
    return f"{name} must be {_allowed(schema)}{shown}"


def _allowed(schema: Mapping[str, Json]) -> str:  # noqa: PLR0911  # a table of cases
    """Put the values that a schema allows into words; empty for an object or array."""
    types = schema.get("type", [])
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"] if value is not None)
    if "boolean" in types:
        return "true or false"
    if "string" in types:
        return "text"
    if "integer" not in types and "number" not in types:
        return ""
    noun = "a whole number" if "integer" in types else "a number"
    if "exclusiveMinimum" in schema:
        return f"{noun} above {schema['exclusiveMinimum']}, at most {schema['maximum']:,}"
    if "maximum" in schema:
        return f"{noun} from {schema['minimum']} to {schema['maximum']:,}"
    return f"{noun}, at least {schema['minimum']}" if "minimum" in schema else noun


def _unknown(name: str, known: Iterable[str]) -> dict[str, str]:
    """Refuse an unknown setting that is probably misspelt; warn about any other."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return {name: f"{name} is not a setting: did you mean {close[0]}?"}
    logger.warning("Ignoring the unknown setting %s.", name)
    return {}


def _check_key(value: str) -> Iterator[str]:
    if " " in value or any(_check_header(value)):
        yield (
            "has a space, a line break or a character that no HTTP header can carry: copy the key "
            "alone, without the word Bearer"
        )


def _check_header(value: str) -> Iterator[str]:
    if not value.isascii() or not value.isprintable() or value != value.strip():
        yield "has a line break or a character that no HTTP header can carry"  # RFC 9110, 5.5


def _check_base_url(value: str) -> Iterator[str]:
    try:
        url = urlsplit(value)
        host, _ = url.hostname or "", url.port
    except ValueError:
        yield f"is not a URL: {_REMEDIES['base_url']}"
        return
    if url.username is not None or url.password is not None:
        yield "must not contain a user name or password: the API takes api_key only"
    elif url.scheme not in {"https", "http"} or not _is_host(host) or not _is_plain(value):
        yield f"is not a URL: {_REMEDIES['base_url']}"
    elif url.scheme == "http" and not _is_loopback(host):
        yield "must begin with https://: over plain http, anyone on the network can read the key"
    elif url.query or url.fragment or "?" in value or "#" in value:
        yield "must end with the path: remove everything from ? or # on"
    elif url.path.rstrip("/").endswith(API_PATH):
        yield f"must not contain {API_PATH}: the tap adds it"


def _check_changes_url(value: str) -> Iterator[str]:
    from tap_public_jobs.changelog import ChangeLog, ChangeLogError  # noqa: PLC0415  # slow

    try:
        ChangeLog(value)
    except ChangeLogError as error:
        before, name, problem = str(error).rstrip(".").partition("changes_url ")
        yield problem if name and not before else f"cannot be used: {before}"


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable() and " " not in value and "\\" not in value


def _is_host(host: str) -> bool:
    label = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"  # RFC 1123, 2.1, and the _ of internal names
    return _address(host) is not None or bool(re.fullmatch(rf"{label}(\.{label})*\.?", host))


def _is_loopback(host: str) -> bool:
    address = _address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")  # RFC 6761, section 6.3
    return address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


_CHECKS = {
    "api_key": _check_key,
    "user_agent": _check_header,
    "base_url": _check_base_url,
    "changes_url": _check_changes_url,
}
