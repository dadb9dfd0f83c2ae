"""What can go wrong, sorted by what follows from it.

A `PublicJobsError` ends the run with one line and exit status 1, so its message says what happened
and what to do about it. The others describe a single request and are settled by whoever made it.
"""


class PublicJobsError(Exception):
    """The run cannot go on, or has ended incomplete; the message names the remedy."""


class AccessError(PublicJobsError):
    """The API refuses this key (API page, "Errors": 401 and 403)."""


class NotTheApiError(PublicJobsError):
    """Something answers at `base_url`, but not the Public Jobs API.

    Args:
        url: What was asked for.
        what: What is wrong with the answer.
    """

    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"base_url does not look like the Public Jobs API: asked for {url.partition('?')[0]}, "
            f"{what}. Set base_url to the address before /api/public/v1."
        )


class RateLimitedError(PublicJobsError):
    """The API rejected one request for exceeding the rate limit, however long it was paused."""


class ListingError(PublicJobsError):
    """The list of published jobs cannot be read to its end."""


class PageError(ListingError):
    """A page cannot be read; whether that matters depends on whether the list goes so far."""


class NotFoundError(Exception):
    """The API answered 404: for a detail, the job is not published (API page, "Endpoints")."""


class RequestRefusedError(Exception):
    """The API answered a 3xx or 4xx status that its specification does not know.

    Args:
        message: Which request, and what came.
        status: The HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
