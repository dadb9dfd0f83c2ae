"""The command `python -m pages.settings`: write docs/settings.md from the settings' schema."""

# ruff: noqa: E501  # one sentence per line

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tap_public_jobs.settings import CONFIG_JSONSCHEMA
from tap_public_jobs.tap import PREFIX, TapPublicJobs

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"

Json = Any

INTRODUCTION = f"""\
# Settings

The variable of a setting is `{PREFIX}` and its name in capitals.
Under Meltano, write the variables into `.env`, beside `meltano.yml`.
A wrong value is refused before the first request, in one line that names the setting and what it allows.
A misspelt variable causes a warning.

## Settings of the tap
"""

SDK = """\
## Settings of every Singer SDK tap

[Stream maps](https://sdk.meltano.com/en/latest/stream_maps.html) rename, filter and compute columns; flattening gives the fields of a column that the catalog declares as object their own columns.

"""

REST = """\
BATCH is not supported: files carry no version, so no row could be removed. The tap refuses `batch_config`.

## The log

| variable | values | what it does |
| --- | --- | --- |
| `TAP_PUBLIC_JOBS_LOGLEVEL` | `DEBUG`, `INFO`, `WARNING`, `ERROR` | The level of the tap's log; `INFO` by default. |
| `MELTANO_CLI_LOG_LEVEL` | `debug`, `info`, `warning`, `error` | What Meltano prints; `info` by default. |

## Which streams and columns

Select them with Meltano: `TAP_PUBLIC_JOBS__SELECT='["jobs.*", "job_publications.*"]'`, with two underscores.

<!-- This page is generated: change tap_public_jobs/settings.py and run `python -m pages.settings`. -->
"""


def page() -> str:
    """Write the page."""
    added: dict[str, Json] = {"properties": {}}
    TapPublicJobs.append_builtin_config(added)
    sdk = added["properties"]
    properties: dict[str, dict[str, Json]] = CONFIG_JSONSCHEMA["properties"]
    own = {name: schema for name, schema in properties.items() if name not in sdk}
    words = {name: schema["description"].replace("<", "&lt;") for name, schema in own.items()}
    titles = {name: schema["title"] for name, schema in sdk.items()}
    return "\n".join([INTRODUCTION, _table(own, words), SDK + _table(sdk, titles), REST])


def _table(settings: dict[str, dict[str, Json]], meanings: dict[str, str]) -> str:
    rows = [["setting", "variable", "allowed, default", "meaning"], ["---"] * 4]
    for name, schema in settings.items():
        variable = f"`{PREFIX}{name.upper()}`"
        rows.append([f"`{name}`", variable, _allowed(name, schema), meanings[name]])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _allowed(name: str, schema: dict[str, Json]) -> str:
    """Describe what a setting allows, as its error does, and its default."""
    parts = [_type(schema)]
    if name in CONFIG_JSONSCHEMA["required"]:
        parts.append("required")
    if schema.get("secret"):
        parts.append("secret")
    if schema.get("default") is not None:
        default = schema["default"]
        text = default if isinstance(default, str) else json.dumps(default)
        parts.append(f"default `{text}`")
    return ", ".join(parts)


def _type(schema: dict[str, Json]) -> str:
    if options := [option for option in schema.get("enum", []) if option is not None]:
        return " or ".join(f"`{option}`" for option in options)
    (kind,) = {kind for kind in schema["type"] if kind != "null"} - {"array"}
    if "exclusiveMinimum" in schema:
        return f"{kind} above {schema['exclusiveMinimum']}, at most {schema['maximum']:,}"
    if "maximum" in schema:
        return f"{kind} {schema['minimum']} to {schema['maximum']:,}"
    return f"{kind} from {schema['minimum']}" if "minimum" in schema else str(kind)


if __name__ == "__main__":
    sys.exit(None if PAGE.write_text(page(), encoding="utf-8") else "nothing was written")
