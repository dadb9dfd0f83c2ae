"""The tap's errors, sorted by their consequences.

A `PublicJobsError` ends the run with one line and exit status 1, so its message says what happened
and what to do about it.
A `RequestError` describes a single request, and its caller decides what to do.
"""

from __future__ import annotations


class PublicJobsError(Exception):
    """The run cannot continue, or has ended incomplete; the message names the remedy."""


class AccessError(PublicJobsError):
    """The API refuses this key (API page, "Errors": 401 and 403).

    Args:
        message: What is wrong with the key, and the remedy.
        status: The HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NotTheApiError(PublicJobsError):
    """Something answers at `base_url`, but not the Public Jobs API.

    Args:
        url: The URL of the request.
        reason: What is wrong with the response.
    """

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"base_url does not look like the Public Jobs API: requested {url.partition('?')[0]}, "
            f"{reason}. Set base_url to the part of the address before /api/public/v1."
        )


class NetworkError(PublicJobsError):
    """Something between this computer and the API is set up wrong."""


class RateLimitedError(PublicJobsError):
    """The API rejected one request for the rate limit ten times in a row."""


class OtherOrganisationError(PublicJobsError):
    """The API key seems to belong to another organisation than the state."""


class ListError(PublicJobsError):
    """The list of published jobs cannot be read to its end."""


class PageError(ListError):
    """A page cannot be read; whether that matters depends on how far the list goes."""


class RequestError(Exception):
    """A single request has failed."""


class NotFoundError(RequestError):
    """The API answered 404, or the publicId now belongs to another job.

    The job is not published (API page, "Get a single published job", rule 1).
    """


class RequestRefusedError(RequestError):
    """The API answered with any other 3xx or 4xx.

    Args:
        message: The request and the response.
        status: The HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class RetriesExhaustedError(RequestError):
    """Every try of a request failed; the message describes the last one."""
