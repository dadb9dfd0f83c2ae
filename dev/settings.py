"""Writes the tap's settings, those of `settings.json`, wherever they are described.

`uv run python dev/settings.py` writes them between two marks into meltano.yml, the plugin
definition, .env.example and docs/set-up/settings.md.
"""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import yaml
from singer_sdk.about import AboutFormatter

from tap_public_jobs.tap import SETTINGS as DECLARED
from tap_public_jobs.tap import TapPublicJobs

REPOSITORY = Path(__file__).parents[1]
WIDTH = 100
MARK = re.compile(r"^( *)(#|<!--) settings: (begin|end).*\n", re.MULTILINE)

Json = Any

# So that SQL is the same on every warehouse, and needs no quotes in PostgreSQL.
VALUES = {"column_naming": {"value": "snake_case"}}

SETTINGS = DECLARED.rules
# The SDK adds the others.
OWN = json.loads((REPOSITORY / "tap_public_jobs/settings.json").read_text("utf-8"))["properties"]


def main() -> None:
    """Write every place."""
    for path, text in written().items():
        path.write_text(text, "utf-8")


def written() -> dict[Path, str]:
    """Return the text that each file should have."""
    texts = {
        "meltano.yml": _yaml({name: in_meltano(name) for name in SETTINGS}),  # values are in config
        "pipeline/meltano/extractors/tap-public-jobs.yml": _yaml(
            {name: in_meltano(name) | VALUES.get(name, {}) for name in SETTINGS}
        ),
        ".env.example": "\n".join(map(in_environment, OWN)),
        "docs/set-up/settings.md": f"\n{table()}\n",
    }
    return {REPOSITORY / name: _replaced(REPOSITORY / name, text) for name, text in texts.items()}


def in_meltano(name: str) -> dict[str, Json]:
    """Return Meltano's definition of a setting; it ignores the variable of one without."""
    schema = SETTINGS[name]
    setting = {
        "name": name,
        "label": schema["title"],
        # Of another kind, Meltano ends with a traceback that names no setting, reads a mistyped
        # "true" as false, and cannot pass on a fraction; the tap reads text itself.
        "kind": next((it for it in ("array", "object") if it in schema["type"]), "string"),
        "description": schema["description"],
    }
    return setting | ({"sensitive": True} if schema.get("secret") else {})


def in_environment(name: str) -> str:
    """Return the lines about a variable, which is active if a user has to set it."""
    schema = SETTINGS[name]
    about = textwrap.fill(schema["description"], WIDTH, initial_indent="# ", subsequent_indent="# ")
    off = "" if name in DECLARED.schema["required"] else "# "
    default = json.dumps(schema["default"]).strip('"') if "default" in schema else ""
    return f"{about}\n{off}TAP_PUBLIC_JOBS_{name.upper()}={default}\n"


def table() -> str:
    """Return the table that `tap-public-jobs --about --format=markdown` prints."""
    about = TapPublicJobs._get_about_info()  # noqa: SLF001  # it prints nothing else
    printed = AboutFormatter.get_formatter("markdown").format_about(about)
    lines = [line for line in printed.splitlines() if line.startswith(("| ", "|:"))]
    settings = next(at for at, line in enumerate(lines) if line.startswith("| Setting "))
    return "\n".join([*lines[settings:], ""])


def _yaml(settings: dict[str, Json]) -> str:
    value = {"settings": [*settings.values()]}
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=WIDTH - 10)


def _replaced(path: Path, text: str) -> str:
    """Return the text of a file with other lines between its marks, indented as they are."""
    old = path.read_text("utf-8")
    begin, end = MARK.finditer(old)
    return old[: begin.end()] + textwrap.indent(text, begin[1]) + old[end.start() :]


if __name__ == "__main__":
    main()
