"""The settings: their names, types and defaults, and how they are read from the environment."""

from __future__ import annotations

import json
import math
import os
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from singer_sdk import typing as th
from singer_sdk.configuration._dict_config import parse_environment_config

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = Any

LONGEST_TIME = 86_400
"""Seconds. More than a day is a mistake of units."""

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
        description="Address of the API, without /api/public/v1, such as https://jobs.example.com. "
        "https only; plain http for loopback hosts only. A path prefix is allowed.",
    ),
    th.Property(
        "auth_header",
        th.StringType(allowed_values=["Authorization", "x-api-key"]),
        default="Authorization",
        title="Authentication header",
        description="The header that carries the key: Authorization or x-api-key.",
    ),
    th.Property(
        "page_size",
        th.IntegerType(minimum=1, maximum=100),
        default=100,
        title="Page size",
        description="Jobs per list request, 1 to 100.",
    ),
    th.Property(
        "rate_limit_requests",
        th.IntegerType(minimum=1),
        default=60,
        title="Rate limit: requests",
        description="Requests that the key may make per period, 1 or more. Lower it if the key is "
        "shared.",
    ),
    th.Property(
        "rate_limit_period_seconds",
        th.NumberType(exclusive_minimum=0, maximum=LONGEST_TIME),
        default=60,
        title="Rate limit: period",
        description="Length of the rate limit's period, in seconds: above 0, at most 86,400.",
    ),
    th.Property(
        "max_concurrent_requests",
        th.IntegerType(minimum=1, maximum=64),
        default=16,
        title="Concurrent requests",
        description="Requests in flight at once, 1 to 64.",
    ),
    th.Property(
        "request_timeout_seconds",
        th.NumberType(exclusive_minimum=0, maximum=LONGEST_TIME),
        default=30,
        title="Request timeout",
        description="Seconds to wait for a connection, and for each part of a response: above 0, "
        "at most 86,400. A whole response may take ten times as long.",
    ),
    th.Property(
        "detail_refresh",
        th.StringType(allowed_values=["all", "changed", "notified"]),
        default="all",
        title="Detail refresh",
        description="Which details a run fetches again. all: every detail. changed: those of jobs "
        "whose summary changed or that webhooks named, and those older than detail_max_age_days. "
        "notified: no request at all unless webhooks named a job; then as changed, whatever the "
        "age.",
    ),
    th.Property(
        "detail_max_age_days",
        th.NumberType(minimum=0, maximum=36_500),
        default=7,
        title="Maximum age of a detail",
        description="Days after which a detail is fetched again under detail_refresh: changed. "
        "0 fetches all; at most 36,500.",
    ),
    th.Property(
        "changes_url",
        th.StringType,
        secret=True,
        title="Change log",
        description="SQLAlchemy URL of the change log that public-jobs-webhook writes, such as "
        "sqlite:////var/lib/public-jobs/changes.db. The run fetches the details of the jobs that "
        "webhooks named.",
    ),
    th.Property(
        "column_naming",
        th.StringType(allowed_values=["source", "snake_case"]),
        default="source",
        title="Column naming",
        description="How columns are named: source, as in the API (jobTitle), or snake_case, as "
        "SQL prefers (job_title). Fields nested in a column keep the API's names.",
    ),
    th.Property(
        "emit_activate_version_messages",
        th.BooleanType,
        default=True,
        title="Emit ACTIVATE_VERSION",
        description="After a complete sync of jobs or job_details, ask the target to remove the "
        "rows of jobs that are no longer published.",
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


def from_environment(schema: Mapping[str, Json], prefix: str) -> dict[str, Json]:
    """Read the settings from environment variables, and from a `.env` file as the SDK does.

    The SDK would read a misspelt "ture" as false, and fail on a bad number with a traceback that
    does not name the setting. So this asks the SDK for text only, and values that do not fit their
    setting stay text, for `problems` to name.

    Args:
        schema: JSON schema of all settings.
        prefix: What the variables' names begin with.

    Returns:
        The settings by name, unknown ones included.
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

    In a deployment, an empty variable means that the setting is unset.
    """
    given = {name: _plain(value) for name, value in config.items() if value not in (None, "")}
    properties: dict[str, dict[str, Json]] = CONFIG_JSONSCHEMA["properties"]
    defaults = {name: sub["default"] for name, sub in properties.items() if "default" in sub}
    return defaults | given


def _plain(value: Json) -> Json:
    # The SDK reads the numbers of a file as decimals, which clocks and sockets do not accept.
    if not isinstance(value, float | Decimal) or not math.isfinite(value):
        return value
    return int(value) if value == int(value) else float(value)


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
