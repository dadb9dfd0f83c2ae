"""A tap as the SDK's template and its page on parent-child streams suggest.

It has no throttle, and retries as the SDK does.
What the template leaves open is filled in from the API's specification.
"""

from typing import Any, ClassVar

import requests
from public_jobs_sandbox.postings import make_jobs, summary
from singer_sdk import RESTStream, Tap
from singer_sdk import typing as th
from singer_sdk.authenticators import BearerTokenAuthenticator
from singer_sdk.pagination import PageNumberPaginator
from singer_sdk.streams.rest import HTTPRequest, PageContext
from typing_extensions import override

PAGE_SIZE = 100
TYPES = {str: "string", int: "number", float: "number", list: "array"}
(JOB,) = make_jobs(1)


def schema_of(job: dict[str, Any]) -> dict[str, Any]:
    """Declare the fields of a job."""
    types = {name: TYPES[type(value)] for name, value in job.items()}
    return {"properties": {name: {"type": [kind, "null"]} for name, kind in types.items()}}


class JobsPaginator(PageNumberPaginator):
    """Ends at the page that reaches the total."""

    @override
    def has_more(self, response: requests.Response) -> bool:
        return bool(self.current_value * PAGE_SIZE < response.json()["total"])


class PublicJobsStream(RESTStream[int]):
    """What both streams have in common."""

    primary_keys = ("id",)

    @property
    @override
    def url_base(self) -> str:
        return f"{self.config['base_url']}/api/public/v1"

    @property
    @override
    def authenticator(self) -> BearerTokenAuthenticator:
        return BearerTokenAuthenticator(token=self.config["api_key"])


class JobsStream(PublicJobsStream):
    """The summaries."""

    name = "jobs"
    path = "/jobs"
    schema: ClassVar = schema_of(summary(JOB))
    records_jsonpath = "$.data[*]"

    @override
    def get_new_paginator(self) -> JobsPaginator:
        return JobsPaginator(1)

    @override
    def get_http_request(self, *, page: PageContext[int]) -> HTTPRequest:
        request = super().get_http_request(page=page)
        request.params |= {"page": page.next_page_token, "pageSize": PAGE_SIZE}
        return request

    @override
    def get_child_context(self, record: dict[str, Any], context: object) -> dict[str, Any]:
        return {"publicId": record["publicId"]}


class JobDetailsStream(PublicJobsStream):
    """The details, one request for each summary."""

    name = "job_details"
    path = "/jobs/{publicId}"
    schema: ClassVar = schema_of(JOB)
    records_jsonpath = "$"
    parent_stream_type = JobsStream
    # The documentation advises this for thousands of parents: otherwise each has a bookmark.
    state_partitioning_keys = ()


class TapPeer(Tap):
    """The tap."""

    name = "tap-peer"
    config_jsonschema = th.PropertiesList(
        th.Property("api_key", th.StringType, required=True, secret=True),
        th.Property("base_url", th.StringType, required=True),
    ).to_dict()

    @override
    def discover_streams(self) -> list[PublicJobsStream]:
        return [JobsStream(self), JobDetailsStream(self)]


if __name__ == "__main__":
    TapPeer.cli()
