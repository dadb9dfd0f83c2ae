# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "dlt>=1.31,<2",
#     "requests-ratelimiter>=0.10,<0.11",
# ]
# ///
"""The API as dlt's generic `rest_api` source, extracted to files: nothing is normalised or loaded.

Settings come as dlt's documentation has them, from environment variables such as
`PUBLIC_JOBS__BASE_URL` and `EXTRACT__WORKERS`. If `PUBLIC_JOBS__REQUESTS` is among them, a rate
limiter is mounted on dlt's own session, below its retries, so that these count too.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
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
"""As many as the adapter keeps that dlt's session has otherwise."""


def limited_session(requests: int, period: float) -> Session:
    """Make a session that sends at most so many requests in any so many seconds."""
    from requests_ratelimiter import (  # noqa: PLC0415 (plain dlt does without)
        HostBucketFactory,
        Limiter,
        LimiterAdapter,
        Rate,
    )

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
    return rest_api_source(
        {
            "client": client,
            "resource_defaults": {"primary_key": "id", "write_disposition": "replace"},
            "resources": [
                {
                    "name": "jobs",
                    "endpoint": {
                        "path": "jobs",
                        "params": {"pageSize": PAGE_SIZE},
                        "data_selector": "data",
                        # `total` counts jobs, and the paginator knows a total of pages only:
                        # so it reads until a page is empty.
                        "paginator": {
                            "type": "page_number",
                            "base_page": 1,
                            "page_param": "page",
                            "total_path": None,
                        },
                    },
                },
                {
                    "name": "job_details",
                    "parallelized": True,
                    "endpoint": {
                        "path": "jobs/{resources.jobs.publicId}",
                        "data_selector": "$",
                        "paginator": "single_page",
                        "response_actions": [{"status_code": 404, "action": "ignore"}],
                    },
                },
            ],
        },
        name="public_jobs",
    )


def main(arguments: list[str]) -> None:
    """Extract, or tell the version or the streams only.

    Args:
        arguments: None, or `--version`, or `--discover`.
    """
    if arguments == ["--version"]:
        sys.stdout.write(f"dlt {importlib.metadata.version('dlt')}\n")
        return
    source = public_jobs()
    if arguments == ["--discover"]:
        tables = [it.compute_table_schema() for it in source.resources.values()]
        json.dump([table["name"] for table in tables], sys.stdout)
        return
    dlt.pipeline("public_jobs", dataset_name="public_jobs").extract(source)


if __name__ == "__main__":
    main(sys.argv[1:])
