"""The API of one organisation in memory, for tests that need no HTTP.

`FakeApi` has the two operations of `PublicJobsClient`.
A test changes the organisation between two runs, between two requests, or within one:

    api = FakeApi(page_size=2, jobs=3)
    api.on_request = lambda it: api.unpublish("0") if it == "page 2" else None  # the list drifts
    api.hidden.add("2")  # published, but not listed
    api.answers["pub-1"] = RequestError("the response is 500", 500)
    api.answers[1] = lambda page: page._replace(items=[])

    assert api.requests == ["page 1", "page 2", "detail pub-1"]
"""

from collections.abc import Callable
from typing import Any, Literal

from tap_public_jobs.errors import NotFoundError
from tap_public_jobs.limit.verdict import MAX_TRIES
from tap_public_jobs.sync.source import JobRef, Page

Document = dict[str, Any]
Total = Literal["exact"] | int | None

# The fields of a job that the list does not show; it shows all others, declared or not.
DETAIL_ONLY = {
    "roleOverview",
    "yearsExperience",
    "primaryLanguage",
    "educationLevel",
    "knockoutQuestions",
}


class FakeApi:
    """Lists and returns the jobs that the test publishes; any thread may make requests.

    Args:
        page_size: Jobs on a page.
        jobs: How many are published from the start; their ids are "0", "1" and so on.

    Attributes:
        published: The published jobs by id, in the order of the list.
        hidden: Ids of published jobs that the list does not show.
        answers: What a page (by number) or a detail (by publicId) answers instead: a value, an
            exception to raise, or a function. The function gets what the answer would be, which is
            None for a 404, and returns the answer, None for a 404, or raises.
        total: The total that the pages show: `exact` counts the listed jobs.
            A function is called for each page.
        shown_size: The page size that the pages show; `page_size` by default.
        on_request: Called with each request, as in `requests`, before it is answered.
        retries: Always 0: no request is tried again.
        requests: Every request so far, such as `page 1` and `detail pub-1`.
        tries: How often the last request of each detail was to be tried.
    """

    retries = 0

    def __init__(self, page_size: int = 100, jobs: int = 0) -> None:
        self.published: dict[str, Document] = {}
        self.hidden: set[str] = set()
        self.answers: dict[int | str, Any] = {}
        self.total: Total | Callable[[], Total] = "exact"
        self.shown_size = page_size
        self.on_request: Callable[[str], object] = lambda _: None
        self.requests: list[str] = []
        self.tries: dict[str, int] = {}
        self._page_size = page_size
        for number in range(jobs):
            self.publish(f"{number}", roleOverview=f"About {number}.")

    def publish(
        self, job_id: str, public_id: str | None = None, *, first: bool = False, **fields: object
    ) -> JobRef:
        """Publish a job, or replace it.

        Args:
            job_id: Its id.
            public_id: Its publicId; `pub-` and the id by default.
            first: Whether a new job is the first of the list, and not the last.
            fields: Its other fields.
        """
        public_id = public_id or f"pub-{job_id}"
        job = {"id": job_id, "publicId": public_id, "jobTitle": f"Job {job_id}"} | fields
        new = {job_id: job}
        self.published = new | self.published if first else self.published | new
        return JobRef(job_id, public_id)

    def unpublish(self, *job_ids: str) -> None:
        """Remove jobs from the list, and their details."""
        for job_id in job_ids:
            del self.published[job_id]

    def edit(self, job_id: str, **fields: object) -> None:
        """Change fields of a published job, or its publicId."""
        self.published[job_id] = self.published[job_id] | fields

    def listed(self) -> list[Document]:
        """Return the summaries that the list shows now; a subclass may put them in disorder."""
        return [
            {name: value for name, value in job.items() if name not in DETAIL_ONLY}
            for job_id, job in self.published.items()
            if job_id not in self.hidden
        ]

    def page(self, number: int) -> Page:
        """Return one page of the list; pages after the last one are empty."""
        self._request(f"page {number}")
        jobs = self.listed()
        items = jobs[(number - 1) * self._page_size : number * self._page_size]
        total = self.total() if callable(self.total) else self.total
        page = Page(items, self.shown_size, len(jobs) if total == "exact" else total)
        answer: Page = self._answer(number, page)
        return answer

    def detail(self, job: JobRef, tries: int = MAX_TRIES) -> Document:
        """Return the whole job.

        Raises:
            NotFoundError: If no such job is published, or another one has its publicId.
        """
        self.tries[job.public_id] = tries
        self._request(f"detail {job.public_id}")
        # A copy: another thread may publish a job during the iteration.
        jobs = [it for it in [*self.published.values()] if it["publicId"] == job.public_id]
        answer: Document | None = self._answer(job.public_id, dict(jobs[0]) if jobs else None)
        if answer is None or (job.id and answer.get("id", job.id) != job.id):
            message = f"/jobs/{job.public_id}: the response is 404 Not Found"
            raise NotFoundError(message, 404)
        return answer

    @property
    def pages(self) -> list[int]:
        """The numbers of the pages that were requested."""
        return [int(it.removeprefix("page ")) for it in self.requests if it.startswith("page ")]

    @property
    def details(self) -> list[str]:
        """The publicIds of the details that were requested."""
        return [it.removeprefix("detail ") for it in self.requests if it.startswith("detail ")]

    def _request(self, request: str) -> None:
        self.requests.append(request)
        self.on_request(request)

    def _answer(self, key: int | str, usual: Any) -> Any:
        answer = self.answers.get(key, usual)
        if callable(answer):
            answer = answer(usual)
        if isinstance(answer, Exception):
            raise answer
        return answer
