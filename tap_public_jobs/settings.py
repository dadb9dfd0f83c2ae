"""The settings: their names, defaults and allowed values, and what to say to a wrong one."""

from __future__ import annotations

import difflib
import ipaddress
import json
import logging
import math
import os
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from singer_sdk import typing as th
from singer_sdk.configuration._dict_config import parse_environment_config
from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

logger = logging.getLogger(__name__)

Json = Any

API_PATH = "/api/public/v1"
"""The version is part of the path (API page, "Versioning")."""

LONGEST_TIME = 86_400
"""Seconds. What a day cannot hold is a mistake of units."""

CONFIG_JSONSCHEMA: dict[str, Json] = th.PropertiesList(
    th.Property(
        "api_key",
        th.StringType,
        required=True,
        secret=True,
        title="API key",
        description="Key of one organisation, created in the portal under Settings → "
        "Integrations → API keys. Use one key per integration.",
    ),
    th.Property(
        "base_url",
        th.StringType,
        required=True,
        title="Base URL",
        description="Where the API is, without /api/public/v1, such as https://jobs.example.com. "
        "https only; plain http for loopback hosts only. A path prefix is allowed.",
    ),
    th.Property(
        "auth_header",
        th.StringType(allowed_values=["Authorization", "x-api-key"]),
        default="Authorization",
        title="Authentication header",
        description="The header that carries the key.",
    ),
    th.Property(
        "page_size",
        th.IntegerType(minimum=1, maximum=100),
        default=100,
        title="Page size",
        description="Jobs per list request.",
    ),
    th.Property(
        "rate_limit_requests",
        th.IntegerType(minimum=1),
        default=60,
        title="Rate limit: requests",
        description="Requests that the key may make per period. Lower it if the key is shared.",
    ),
    th.Property(
        "rate_limit_period_seconds",
        th.NumberType(exclusive_minimum=0, maximum=LONGEST_TIME),
        default=60,
        title="Rate limit: period",
        description="Length of the rate limit's period, in seconds.",
    ),
    th.Property(
        "max_concurrent_requests",
        th.IntegerType(minimum=1, maximum=64),
        default=8,
        title="Concurrent requests",
        description="Requests in flight at once.",
    ),
    th.Property(
        "request_timeout_seconds",
        th.NumberType(exclusive_minimum=0, maximum=LONGEST_TIME),
        default=30,
        title="Request timeout",
        description="Seconds to wait for a connection, and for each part of an answer.",
    ),
    th.Property(
        "detail_refresh",
        th.StringType(allowed_values=["all", "changed", "notified"]),
        default="all",
        title="Detail refresh",
        description="Which details a run fetches again: all of them, or only those of jobs whose "
        "summary changed and those older than detail_max_age_days, or only those that webhooks "
        "named.",
    ),
    th.Property(
        "detail_max_age_days",
        th.NumberType(minimum=0, maximum=36_500),
        default=7,
        title="Greatest age of a detail",
        description="Days after which a detail is fetched again under detail_refresh: changed. "
        "0 fetches all.",
    ),
    th.Property(
        "changes_url",
        th.StringType,
        secret=True,
        title="Change log",
        description="SQLAlchemy URL of the log that public-jobs-webhook fills, such as "
        "sqlite:////var/lib/public-jobs/changes.db. The jobs that webhooks named are fetched "
        "again.",
    ),
    th.Property(
        "column_naming",
        th.StringType(allowed_values=["source", "snake_case"]),
        default="source",
        title="Column naming",
        description="What columns are called: as the API calls its fields (jobTitle), or as SQL "
        "prefers (job_title). What is nested in a column keeps the names of the API.",
    ),
    th.Property(
        "emit_activate_version_messages",
        th.BooleanType,
        default=True,
        title="Emit ACTIVATE_VERSION",
        description="After a complete sync of a stream, tell the target to remove the rows of "
        "jobs that are no longer published.",
    ),
    th.Property(
        "user_agent",
        th.StringType,
        title="User agent",
        description="The User-Agent header; tap-public-jobs/<version> by default.",
    ),
).to_dict()

_BOOLEANS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}

_REMEDIES = {
    "api_key": "create a key in the portal under Settings → Integrations → API keys",
    "base_url": "the address of the API, such as https://jobs.example.com",
}


def from_environment(schema: Mapping[str, Json], prefix: str) -> dict[str, Json]:
    """Read the settings from environment variables, and from a `.env` file as the SDK does.

    The SDK would read a misspelt "ture" as false, and end at a bad number with a traceback that
    does not name it. So it is asked for the text of every setting, and values that are not what
    their setting needs stay text, for `problems` to name.

    Args:
        schema: JSON schema of all settings.
        prefix: What the variables' names begin with.

    Returns:
        The settings by name, those that are not known included.
    """
    properties: Mapping[str, dict[str, Json]] = schema["properties"]
    texts = parse_environment_config(
        {"properties": {name: {"type": "string"} for name in properties}}, prefix
    )
    known = {name: _typed(text, properties[name]) for name, text in texts.items()}
    names = {name.removeprefix(prefix) for name in os.environ if name.startswith(prefix)}
    unknown = {name.lower() for name in names - {"LOGLEVEL"} if not name.startswith("_")}
    return dict.fromkeys(unknown - properties.keys(), "set in the environment") | known


def with_defaults(config: Mapping[str, Json]) -> dict[str, Json]:
    """Fill in the defaults of settings that are missing, null or empty.

    An empty variable in a deployment means a setting that was left out.
    """
    given = {name: _plain(value) for name, value in config.items() if value not in (None, "")}
    properties: dict[str, dict[str, Json]] = CONFIG_JSONSCHEMA["properties"]
    defaults = {name: sub["default"] for name, sub in properties.items() if "default" in sub}
    return defaults | given


def _plain(value: Json) -> Json:
    # The SDK reads the numbers of a file as decimals, which clocks and sockets do not take.
    if not isinstance(value, float | Decimal) or not math.isfinite(value):
        return value
    return int(value) if value == int(value) else float(value)


def problems(config: Mapping[str, Json], schema: Mapping[str, Json]) -> list[str]:
    """Tell everything that is wrong with the settings.

    Args:
        config: The settings, with their defaults.
        schema: JSON schema of all settings, the SDK's own included.

    Returns:
        A sentence for each wrong setting: its name, what is allowed, and the remedy. Values of
        secret settings are not in it.
    """
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
    for name, value in config.items():
        if name not in properties:
            found.update(_unknown(name, properties))
        elif isinstance(value, float) and not math.isfinite(value):
            found[name] = _wrong_value(name, value, properties[name])
    checks = {"api_key": _check_key, "user_agent": _check_header, "base_url": _check_base_url}
    for name, check in checks.items():
        if isinstance(config.get(name), str) and name not in found:
            found.update((name, f"{name} {problem}") for problem in check(config[name]))
    if config.get("detail_refresh") == "notified" and "changes_url" not in config:
        found["changes_url"] = (
            "detail_refresh: notified needs changes_url, the address of the log that "
            "public-jobs-webhook fills"
        )
    return list(found.values())


def _typed(text: str, schema: Mapping[str, Json]) -> Json:
    types = schema.get("type", [])
    if "string" in types:
        return text
    if "boolean" in types and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text
    return _plain(value)


def _wrong_value(name: str, value: Json, schema: Mapping[str, Json]) -> str:
    shown = "" if schema.get("secret") else f", not {json.dumps(value, default=str)[:100]}"
    return f"{name} must be {_allowed(schema)}{shown}"


def _allowed(schema: Mapping[str, Json]) -> str:  # noqa: PLR0911  # a table of cases
    """Put the values that a schema allows into words; empty for a schema of structure."""
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
    """Refuse a setting that is probably misspelt; warn of any other that has no effect."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return {name: f"{name} is not a setting: did you mean {close[0]}?"}
    logger.warning("The setting %s is not known and has no effect.", name)
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
        yield "must begin with https://: over plain http anyone on the way can read the key"
    elif url.query or url.fragment or "?" in value or "#" in value:
        yield "must end with the path: leave out everything from ? or # on"
    elif url.path.rstrip("/").endswith(API_PATH):
        yield f"must not contain {API_PATH}, which is added to it"


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
