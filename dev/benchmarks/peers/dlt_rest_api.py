# /// script
# requires-python = ">=3.11"
# dependencies = ["dlt>=1.31,<2"]
# ///
"""The API as dlt's generic `rest_api` source, extracted to files: nothing is normalised or loaded.

Its config is a JSON file of environment variables, which dlt's documentation describes; without
one, it prints its version.
"""

import json
import os
import sys
from pathlib import Path

import dlt
from dlt.sources.rest_api import rest_api_source

if __name__ == "__main__":
    if not sys.argv[1:]:
        print(dlt.__version__)
        sys.exit()
    os.environ.update(json.loads(Path(sys.argv[-1]).read_text(encoding="utf-8")))
    client = {
        "base_url": f"{dlt.config['public_jobs.base_url']}/api/public/v1/",
        "auth": {"type": "bearer", "token": dlt.secrets["public_jobs.api_key"]},
    }
    jobs = {
        "path": "jobs",
        "params": {"pageSize": 100},
        "data_selector": "data",
        # The paginator expects a total of pages, but `total` counts jobs: read to an empty page.
        "paginator": {"type": "page_number", "base_page": 1, "total_path": None},
    }
    details = {
        "path": "jobs/{resources.jobs.publicId}",
        "data_selector": "$",
        "paginator": "single_page",
        "response_actions": [{"status_code": 404, "action": "ignore"}],
    }
    defaults = {"primary_key": "id", "write_disposition": "replace"}
    resources = [
        {"name": "jobs", "endpoint": jobs},
        {"name": "job_details", "parallelized": True, "endpoint": details},
    ]
    api = {"client": client, "resource_defaults": defaults, "resources": resources}
    dlt.pipeline("public_jobs").extract(rest_api_source(api, name="public_jobs"))
