"""The plugins of Meltano: in this project, and as a project of one's own adds them."""

from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]


def plugin(kind: str, name: str) -> dict[str, Any]:
    """One plugin of meltano.yml."""
    project = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))
    return dict(next(it for it in project["plugins"][kind] if it["name"] == name))


def definition(kind: str, name: str) -> dict[str, Any]:
    """What `meltano add --from-ref` puts into a project."""
    path = REPOSITORY / "plugins" / kind / f"{name}.yml"
    return dict(yaml.safe_load(path.read_text("utf-8")))
