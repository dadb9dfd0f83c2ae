# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "airbyte-cdk>=7.39,<8",
# ]
# ///
"""Runs the manifest `airbyte.yaml` on Airbyte's low-code CDK."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from airbyte_cdk.entrypoint import launch
from airbyte_cdk.sources.declarative.concurrent_declarative_source import (
    ConcurrentDeclarativeSource,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST = Path(__file__).with_suffix(".yaml")


def manifest(config: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the manifest by what a manifest cannot take from settings: schemas, and a budget."""
    described: dict[str, Any] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    for stream, schema in config["schemas"].items():
        described["definitions"][stream]["schema_loader"]["schema"] = schema
    if config["requests"]:
        rate = {"type": "Rate", "limit": config["requests"], "interval": f"PT{config['period']:f}S"}
        policy = {"type": "MovingWindowCallRatePolicy", "rates": [rate], "matchers": []}
        described["api_budget"] = {
            "type": "HTTPAPIBudget",
            "status_codes_for_ratelimit_hit": [429],
            "policies": [policy],
        }
    return described


def main(config_file: str) -> None:
    """Read both streams to stdout."""
    config = ConcurrentDeclarativeSource.read_config(config_file)
    modes = {"sync_mode": "full_refresh", "destination_sync_mode": "overwrite"}
    described = {"json_schema": {}, "supported_sync_modes": ["full_refresh"]}
    streams = [{"stream": {"name": name, **described}, **modes} for name in config["schemas"]]
    catalog = Path(config_file).with_name("catalog.json")
    catalog.write_text(json.dumps({"streams": streams}), encoding="utf-8")
    source = ConcurrentDeclarativeSource(
        config=config,
        catalog=ConcurrentDeclarativeSource.read_catalog(str(catalog)),
        state=[],
        source_config=manifest(config),
    )
    launch(source, ["read", "--config", config_file, "--catalog", str(catalog)])


if __name__ == "__main__":
    main(sys.argv[-1])
