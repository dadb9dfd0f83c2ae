"""A tap as the SDK's template and its page on parent-child streams lead to: no throttle of its own.

What the template leaves open is filled in from the API's specification; retries are the SDK's.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

from singer_sdk import RESTStream, Tap
from singer_sdk import typing as th
from singer_sdk.authenticators import BearerTokenAuthenticator
from singer_sdk.helpers.jsonpath import extract_jsonpath
from singer_sdk.pagination import PageNumberPaginator
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable

    import requests
    from singer_sdk.helpers.types import Context
    from singer_sdk.streams.rest import HTTPRequest, PageContext

PAGE_SIZE = 100

SUMMARY = (
    th.Property("id", th.StringType, required=True),
    th.Property("publicId", th.StringType),
    th.Property("jobTitle", th.StringType),
    th.Property("location", th.StringType),
    th.Property("department", th.StringType),
    th.Property("type", th.StringType),
    th.Property("seniorityLevel", th.StringType),
    th.Property("minSalary", th.NumberType),
    th.Property("maxSalary", th.NumberType),
    th.Property("currency", th.StringType),
    th.Property("jobUrl", th.StringType),
    th.Property("applyUrl", th.StringType),
)

# The last five have no documented names: these are the ones that the sandbox answers with.
DETAIL = (
    *SUMMARY,
    th.Property("roleOverview", th.StringType),
    th.Property("yearsExperience", th.NumberType),
    th.Property("primaryLanguage", th.StringType),
    th.Property("educationLevel", th.StringType),
    th.Property(
        "knockoutQuestions",
        th.ArrayType(
            th.ObjectType(
                th.Property("id", th.StringType),
                th.Property("question", th.StringType),
                th.Property("required", th.BooleanType),
                th.Property("type", th.StringType),
            )
        ),
    ),
    th.Property("keyResponsibilities", th.StringType),
    th.Property("requiredSkills", th.ArrayType(th.StringType)),
    th.Property("preferredQualifications", th.ArrayType(th.StringType)),
    th.Property("benefitsDescription", th.StringType),
    th.Property("workAuthorizationRequirements", th.StringType),
)


class PublicJobsStream(RESTStream[int]):
    """What both streams have in common."""

    primary_keys = ("id",)

    @property
    @override
    def url_base(self) -> str:
        return f"{self.config['api_url']}/api/public/v1"

    @property
    @override
    def authenticator(self) -> BearerTokenAuthenticator:
        return BearerTokenAuthenticator(token=self.config["auth_token"])

    @override
    def parse_response(self, response: requests.Response) -> Iterable[dict[str, Any]]:
        yield from extract_jsonpath(
            self.records_jsonpath, input=response.json(parse_float=decimal.Decimal)
        )


class JobsPaginator(PageNumberPaginator):
    """Ends at the page that reaches the total."""

    @override
    def has_more(self, response: requests.Response) -> bool:
        envelope = response.json()
        return bool(envelope["page"] * envelope["pageSize"] < envelope["total"])


class JobsStream(PublicJobsStream):
    """The summaries."""

    name = "jobs"
    path = "/jobs"
    records_jsonpath = "$.data[*]"
    schema = th.PropertiesList(*SUMMARY).to_dict()

    @override
    def get_new_paginator(self) -> JobsPaginator:
        return JobsPaginator(1)

    @override
    def get_http_request(self, *, page: PageContext[int]) -> HTTPRequest:
        request = super().get_http_request(page=page)
        request.params["page"] = page.next_page_token
        request.params["pageSize"] = PAGE_SIZE
        return request

    @override
    def get_child_context(self, record: dict[str, Any], context: Context | None) -> dict[str, Any]:
        return {"publicId": record["publicId"]}


class JobDetailsStream(PublicJobsStream):
    """The details, one request for each summary."""

    name = "job_details"
    path = "/jobs/{publicId}"
    records_jsonpath = "$"
    parent_stream_type = JobsStream
    # What the documentation advises where parents are thousands: else each has a bookmark.
    state_partitioning_keys = ()
    schema = th.PropertiesList(*DETAIL).to_dict()

    @override
    def get_new_paginator(self) -> None:
        return None


class TapPeer(Tap):
    """The tap."""

    name = "tap-peer"
    config_jsonschema = th.PropertiesList(
        th.Property("auth_token", th.StringType, required=True, secret=True),
        th.Property("api_url", th.StringType, required=True),
    ).to_dict()

    @override
    def discover_streams(self) -> list[PublicJobsStream]:
        return [JobsStream(self), JobDetailsStream(self)]


if __name__ == "__main__":
    TapPeer.cli()
