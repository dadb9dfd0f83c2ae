# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "airbyte-cdk>=7.39,<8",
# ]
# ///
"""The API as a declarative manifest of Airbyte's low-code CDK, with its command line."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING, Any

from airbyte_cdk.entrypoint import AirbyteEntrypoint, launch
from airbyte_cdk.sources.declarative.concurrent_declarative_source import (
    ConcurrentDeclarativeSource,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE_SIZE = 100
MOST_WORKERS = 64

TEXTS = (
    "id",
    "publicId",
    "jobTitle",
    "location",
    "department",
    "type",
    "seniorityLevel",
    "currency",
    "jobUrl",
    "applyUrl",
)
NUMBERS = ("minSalary", "maxSalary")
# The names that are not documented are those that the sandbox answers with.
DETAIL_TEXTS = (
    "roleOverview",
    "primaryLanguage",
    "educationLevel",
    "keyResponsibilities",
    "benefitsDescription",
    "workAuthorizationRequirements",
)
DETAIL_NUMBERS = ("yearsExperience",)
DETAIL_ARRAYS = ("knockoutQuestions", "requiredSkills", "preferredQualifications")


def schema(
    texts: tuple[str, ...], numbers: tuple[str, ...], arrays: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Describe records by the names of their fields."""
    return {
        "type": "object",
        "additionalProperties": True,
        "properties": {
            **{name: {"type": ["string", "null"]} for name in texts},
            **{name: {"type": ["number", "null"]} for name in numbers},
            **{name: {"type": ["array", "null"]} for name in arrays},
        },
    }


def requester(path: str) -> dict[str, Any]:
    """Describe how one operation is requested."""
    return {
        "type": "HttpRequester",
        "url_base": "{{ config['base_url'] }}/api/public/v1",
        "path": path,
        "http_method": "GET",
        "authenticator": {"type": "BearerAuthenticator", "api_token": "{{ config['api_key'] }}"},
        "error_handler": {
            "type": "DefaultErrorHandler",
            "response_filters": [
                {"type": "HttpResponseFilter", "http_codes": [404], "action": "IGNORE"},
                {"type": "HttpResponseFilter", "http_codes": [429], "action": "RATE_LIMITED"},
            ],
            "backoff_strategies": [{"type": "WaitTimeFromHeader", "header": "Retry-After"}],
        },
    }


def stream(name: str, retriever: dict[str, Any], json_schema: dict[str, Any]) -> dict[str, Any]:
    """Describe a stream."""
    return {
        "type": "DeclarativeStream",
        "name": name,
        "primary_key": ["id"],
        "retriever": {"type": "SimpleRetriever", **retriever},
        "schema_loader": {"type": "InlineSchemaLoader", "schema": json_schema},
    }


def records(*path: str) -> dict[str, Any]:
    """Describe where in an answer the records are."""
    return {
        "type": "RecordSelector",
        "extractor": {"type": "DpathExtractor", "field_path": list(path)},
    }


def budget(requests: int, period: float) -> dict[str, Any]:
    """Describe a budget of so many requests in any so many seconds."""
    return {
        "type": "HTTPAPIBudget",
        "status_codes_for_ratelimit_hit": [429],
        "policies": [
            {
                "type": "MovingWindowCallRatePolicy",
                "rates": [{"type": "Rate", "limit": requests, "interval": f"PT{period:f}S"}],
                "matchers": [],
            }
        ],
    }


def manifest(config: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the source.

    Args:
        config: With `requests` and `period` if there is a budget: intervals are not interpolated.
    """
    jobs = stream(
        "jobs",
        {
            "requester": requester("/jobs"),
            "record_selector": records("data"),
            "paginator": {
                "type": "DefaultPaginator",
                "page_token_option": {
                    "type": "RequestOption",
                    "inject_into": "request_parameter",
                    "field_name": "page",
                },
                "page_size_option": {
                    "type": "RequestOption",
                    "inject_into": "request_parameter",
                    "field_name": "pageSize",
                },
                "pagination_strategy": {
                    "type": "PageIncrement",
                    "start_from_page": 1,
                    "page_size": PAGE_SIZE,
                    "inject_on_first_request": True,
                },
            },
        },
        schema(TEXTS, NUMBERS),
    )
    details = stream(
        "job_details",
        {
            "requester": requester("/jobs/{{ stream_partition.public_id }}"),
            "record_selector": records(),
            "partition_router": {
                "type": "SubstreamPartitionRouter",
                "parent_stream_configs": [
                    {
                        "type": "ParentStreamConfig",
                        "stream": jobs,
                        "parent_key": "publicId",
                        "partition_field": "public_id",
                    }
                ],
            },
        },
        schema(TEXTS + DETAIL_TEXTS, NUMBERS + DETAIL_NUMBERS, DETAIL_ARRAYS),
    )
    return {
        "type": "DeclarativeSource",
        "version": importlib.metadata.version("airbyte-cdk"),
        "check": {"type": "CheckStream", "stream_names": ["jobs"]},
        "streams": [jobs, details],
        "concurrency_level": {
            "type": "ConcurrencyLevel",
            "default_concurrency": "{{ config['workers'] }}",
            "max_concurrency": MOST_WORKERS,
        },
        "spec": {
            "type": "Spec",
            "connection_specification": {
                "type": "object",
                "required": ["base_url", "api_key"],
                "properties": {
                    "base_url": {"type": "string"},
                    "api_key": {"type": "string", "airbyte_secret": True},
                    "workers": {"type": "integer"},
                    "requests": {"type": "integer"},
                    "period": {"type": "number"},
                },
            },
        },
        **(
            {"api_budget": budget(config["requests"], config["period"])}
            if "requests" in config
            else {}
        ),
    }


def main(arguments: list[str]) -> None:
    """Run a command of the Airbyte protocol, or tell the version only.

    Args:
        arguments: What a connector takes, or `--version`.
    """
    if arguments == ["--version"]:
        sys.stdout.write(f"airbyte-cdk {importlib.metadata.version('airbyte-cdk')}\n")
        return
    files = AirbyteEntrypoint.parse_args(arguments)
    read = ConcurrentDeclarativeSource
    config = read.read_config(files.config)
    source = ConcurrentDeclarativeSource(
        config=config,
        catalog=read.read_catalog(files.catalog) if "catalog" in files else None,
        state=read.read_state(files.state) if getattr(files, "state", None) else [],
        source_config=manifest(config),
    )
    launch(source, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
