"""The stream `jobs`: the list, page by page, and which jobs it does not show any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from singer_sdk.exceptions import RetriableAPIError
from singer_sdk.streams.rest import HTTPRequest
from typing_extensions import override

from tap_public_jobs.client import MAX_TRIES
from tap_public_jobs.errors import NotFoundError, NotTheApiError, PageError, RequestRefusedError
from tap_public_jobs.ledger import between_states
from tap_public_jobs.listing import Listing, Page
from tap_public_jobs.snapshot import SnapshotStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from singer_sdk import Tap
    from singer_sdk.helpers.types import Context

    from tap_public_jobs.connection import Connection


class Jobs(SnapshotStream):
    """The summaries of all published jobs (API page, "List published jobs")."""

    name = "jobs"
    path = "/jobs"

    def __init__(self, tap: Tap, connection: Connection) -> None:
        super().__init__(tap, connection)
        self.listing = Listing(self.fetch_page, workers=self.config["max_concurrent_requests"])

    @property
    @override
    def complete(self) -> bool:
        return self.listing.whole

    @property
    @override
    def problems(self) -> list[str]:
        return [
            f"a job without a usable id or publicId was left out: {place} of the list"
            for place in self.listing.unusable
        ]

    @override
    def get_records(self, context: Context | None) -> Iterator[dict[str, Any]]:
        known = dict.fromkeys(self._known())
        ahead: list[dict[str, Any]] = []
        for summary in self.listing.summaries():
            ahead.append(summary)
            if len(ahead) == between_states(len(known), share=4):
                yield from self._rows(ahead, known)
        yield from self._rows(ahead, known)

    def _rows(
        self, summaries: list[dict[str, Any]], known: dict[str, None]
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of jobs, after a state that knows of those that are new."""
        ids = dict.fromkeys(summary["id"] for summary in summaries)
        if ids.keys() - known.keys() and not self.is_test:
            known |= ids
            self.stream_state["published"] = list(known)
            self.announce()
        for summary in summaries:
            yield self.columns.row(summary, isPublished=True)
        summaries.clear()

    @property
    @override
    def unpublished(self) -> list[str]:
        if not self.listing.whole:
            return []
        listed = {job.id for job in self.listing.jobs()}
        return [job_id for job_id in self._known() if job_id not in listed]

    @override
    def finish(self) -> None:
        if self.is_test:
            return
        known = [] if self.listing.whole else self._known()
        listed = [job.id for job in self.listing.jobs()]
        self.stream_state["published"] = list(dict.fromkeys([*known, *listed]))

    def _known(self) -> list[str]:
        """Return the ids of the jobs that the table says are published, by earlier runs."""
        known = self.stream_state.get("published")
        if not isinstance(known, list):
            return []
        return [job_id for job_id in known if isinstance(job_id, str)]

    def fetch_page(self, number: int) -> Page:
        """Fetch one page of the list.

        Args:
            number: Counted from 1.

        Raises:
            PublicJobsError: The list cannot be read.
        """
        size = self.config["page_size"]
        request = HTTPRequest(
            self.url_base + self.path,
            headers=self.http_headers,
            params={"page": number, "pageSize": size},
        )
        try:
            envelope = self.fetch(request, is_answer=lambda it: isinstance(it.get("data"), list))
        except (NotFoundError, RequestRefusedError) as error:
            if number > 1:
                msg = f"Page {number} of the list of jobs cannot be read: {error}."
                raise PageError(msg) from error
            if isinstance(error, NotFoundError):
                raise NotTheApiError(request.url, "the answer is 404") from error
            if error.status < 400:  # noqa: PLR2004
                raise NotTheApiError(request.url, f"it redirects ({error.status})") from error
            msg = f"The list of jobs cannot be read: {error}. Check base_url and page_size."
            raise PageError(msg) from error
        except RetriableAPIError as error:
            msg = (
                f"The list of jobs cannot be read: {error}, after {MAX_TRIES} tries. Check "
                "base_url and the network, or run again later."
            )
            raise PageError(msg) from error
        return Page(
            envelope["data"], _count(envelope, "pageSize") or size, _count(envelope, "total")
        )


def _count(envelope: dict[str, Any], name: str) -> int | None:
    value = envelope.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
