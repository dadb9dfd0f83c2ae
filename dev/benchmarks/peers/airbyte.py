# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "airbyte-cdk>=7.39,<8",
# ]
# ///
"""Reads both streams of `airbyte.yaml` with Airbyte's own command for such manifests."""

import json
import sys
from pathlib import Path

from airbyte_cdk.cli.source_declarative_manifest import run

MODES = {"sync_mode": "full_refresh", "destination_sync_mode": "overwrite"}
STREAM = {"json_schema": {}, "supported_sync_modes": ["full_refresh"]}
STREAMS = [{"stream": {"name": name, **STREAM}, **MODES} for name in ("jobs", "job_details")]

if __name__ == "__main__":
    config = sys.argv[-1]
    catalog = Path(config).with_name("catalog.json")
    catalog.write_text(json.dumps({"streams": STREAMS}), encoding="utf-8")
    files = ["--config", config, "--catalog", str(catalog)]
    manifest = Path(__file__).with_suffix(".yaml")
    sys.argv[1:] = ["read", *files, "--manifest-path", str(manifest)]
    run()
