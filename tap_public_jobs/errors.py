"""The tap's errors, sorted by their consequences.

A `TapError` ends the run with one line and exit status 1, unless its caller can do without what
failed. So its message says what that means for the tables, what happened, and what to do.
A `RequestError` describes a single request, and its caller decides what to do.
"""


class TapError(Exception):
    """The run cannot continue, or has ended incomplete; the message names the remedy."""


class SetupError(TapError):
    """A setting or a file is wrong, so every run fails until somebody corrects it."""

    def __init__(self, message: str) -> None:
        super().__init__(f"Nothing more is loaded until you act. {message}")


class PageError(TapError):
    """A page cannot be read; whether that matters depends on how far the list goes.

    Args:
        message: The page, and what became of it.
        status: As in a `RequestError`.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class NotificationLogError(TapError):
    """The notification log cannot be used; the message shows no part of a server's URL."""


class DamagedStateError(Exception):
    """A state that this version of the tap cannot read."""


class RequestError(Exception):
    """A single request has failed for good: it was refused, or all its tries failed.

    Args:
        message: The request, and what became of it.
        status: The HTTP status of the last response; None if there was none, or its body failed.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class RejectedError(RequestError):
    """The rate limit rejected a request too often."""


class NotFoundError(RequestError):
    """The API answered 404 or 410, or the publicId now belongs to another job.

    The job is not published (API page, "Get a single published job", rule 1).
    """
