"""The least that a tap could be: it reads both streams on the SDK, as fast as the API answers.

It checks, retries, limits and remembers nothing.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import count
from typing import Any, ClassVar

import requests
from requests.adapters import HTTPAdapter
from singer_sdk import Stream, StreamSchema, Tap
from singer_sdk.schema.source import SchemaDirectory
from typing_extensions import override

from tap_public_jobs import schemas

Record = dict[str, Any]
WORKERS = 16


class PublicJobsStream(Stream):
    """What both streams have in common."""

    primary_keys: ClassVar = ("id",)
    schema: ClassVar = StreamSchema(SchemaDirectory(schemas))
    tap: "Bare"

    def __init__(self, tap: "Bare") -> None:
        super().__init__(tap)
        self.tap = tap

    @override
    def post_process(self, row: Record, context: Any = None) -> Record:
        """Keep the fields without a column: the SDK would drop them."""
        others = {name: row[name] for name in row.keys() - self.schema["properties"].keys()}
        return row | {"additionalFields": json.dumps(others) if others else None}


class Jobs(PublicJobsStream):
    """The list."""

    name = "jobs"

    @override
    def get_records(self, context: Any) -> Iterator[Record]:
        yield from self.tap.jobs


class JobDetails(PublicJobsStream):
    """A detail for each."""

    name = "job_details"

    @override
    def get_records(self, context: Any) -> Iterator[Record]:
        with ThreadPoolExecutor(WORKERS) as pool:
            yield from pool.map(self.tap.get, [f"/{job['publicId']}" for job in self.tap.jobs])


class Bare(Tap):
    """Both streams of an organisation."""

    name = "bare"
    config_jsonschema: ClassVar = {"properties": {}}

    @cached_property
    def _session(self) -> requests.Session:
        session = requests.Session()
        session.mount("http://", HTTPAdapter(pool_maxsize=WORKERS))
        session.headers["Authorization"] = f"Bearer {self.config['api_key']}"
        return session

    def get(self, path: str, **parameters: int) -> Record:
        """Request a page or a detail."""
        url = f"{self.config['base_url']}/api/public/v1/jobs{path}"
        return self._session.get(url, params=parameters, timeout=30).json()  # type: ignore[no-any-return]

    @cached_property
    def jobs(self) -> list[Record]:
        """All items of the list."""
        jobs: list[Record] = []
        for number in count(1):
            jobs += (page := self.get("", page=number, pageSize=100))["data"]
            if len(jobs) >= page["total"]:
                break
        return jobs

    @override
    def discover_streams(self) -> list[Stream]:
        return [Jobs(self), JobDetails(self)]


if __name__ == "__main__":
    Bare.cli()
