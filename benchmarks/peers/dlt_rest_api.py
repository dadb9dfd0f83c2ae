# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "dlt>=1.31,<2",
#     "requests-ratelimiter>=0.10,<0.11",
# ]
# ///
"""The API as dlt's generic `rest_api` source, extracted to files: nothing is normalised or loaded.

Its config is a JSON file of environment variables, which dlt's documentation describes.
`PUBLIC_JOBS__REQUESTS` mounts a rate limiter on dlt's own session, below its retries, so that these
count too.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dlt
from dlt.sources.helpers.requests import Client
from dlt.sources.rest_api import rest_api_source

if TYPE_CHECKING:
    from dlt.extract import DltSource
    from requests import Session

PAGE_SIZE = 100
MILLISECONDS = 1000
CONNECTIONS = 50
"""As many as the adapter of dlt's own session keeps."""


def limited_session(requests: int, period: float) -> Session:
    """Make a session that keeps a budget of requests per `period` seconds."""
    # Imported only if it is used, because that takes time.
    from requests_ratelimiter import HostBucketFactory, Limiter, LimiterAdapter, Rate  # noqa: PLC0415

    # Of its shorthands, `per_minute` fits one period only, and bursts of 60 seconds are an error.
    limiter = Limiter(HostBucketFactory([Rate(requests, round(period * MILLISECONDS))]))
    adapter = LimiterAdapter(limiter=limiter, pool_maxsize=CONNECTIONS)
    session: Session = Client(raise_for_status=False).session
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def public_jobs() -> DltSource:
    """Make the source."""
    client: dict[str, Any] = {
        "base_url": f"{dlt.config['public_jobs.base_url']}/api/public/v1/",
        "auth": {"type": "bearer", "token": dlt.secrets["public_jobs.api_key"]},
    }
    requests = dlt.config.get("public_jobs.requests", int)
    if requests:
        client["session"] = limited_session(requests, dlt.config.get("public_jobs.period", float))
    jobs = {
        "path": "jobs",
        "params": {"pageSize": PAGE_SIZE},
        "data_selector": "data",
        # The paginator knows a total of pages, and `total` counts jobs: it reads to an empty page.
        "paginator": {"type": "page_number", "base_page": 1, "total_path": None},
    }
    details = {
        "path": "jobs/{resources.jobs.publicId}",
        "data_selector": "$",
        "paginator": "single_page",
        "response_actions": [{"status_code": 404, "action": "ignore"}],
    }
    return rest_api_source(
        {
            "client": client,
            "resource_defaults": {"primary_key": "id", "write_disposition": "replace"},
            "resources": [
                {"name": "jobs", "endpoint": jobs},
                {"name": "job_details", "parallelized": True, "endpoint": details},
            ],
        },
        name="public_jobs",
    )


if __name__ == "__main__":
    os.environ.update(json.loads(Path(sys.argv[-1]).read_text(encoding="utf-8")))
    dlt.pipeline("public_jobs", dataset_name="public_jobs").extract(public_jobs())
