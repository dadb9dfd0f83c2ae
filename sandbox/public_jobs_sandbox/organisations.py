"""Organisations and their jobs, with the JSON of each job cached."""

import json

from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import UNDOCUMENTED_FIELDS, Job, summary


def to_json(value: object) -> bytes:
    """Return compact JSON, with numbers as short as Python writes them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")  # half a surrogate pair becomes a JSON escape


class Posting:
    """A job and its publication flag (*States and transitions*)."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.is_published = True
        self._summary: bytes | None = None
        self._details: dict[tuple[bool, bool], bytes] = {}

    def summary_json(self) -> bytes:
        """Return the job as an element of the list (*Job summary*)."""
        if self._summary is None:
            self._summary = to_json(summary(self.job))
        return self._summary

    def detail_json(self, options: Options) -> bytes:
        """Return the job as the detail operation returns it (*Job detail*)."""
        shape = (options.undocumented_fields, options.omit_empty)
        if shape not in self._details:
            self._details[shape] = to_json(self._detail(options))
        return self._details[shape]

    def _detail(self, options: Options) -> Job:
        documented = summary(self.job)
        return {
            field: value
            for field, value in self.job.items()
            if field in documented
            or (
                (options.undocumented_fields or field not in UNDOCUMENTED_FIELDS)
                and not (options.omit_empty and value in (None, "", []))
            )
        }


class Organisation:
    """An organisation: its postings by publicId, its latest key, and what its plan includes."""

    def __init__(self, name: str, *, plan_includes_api: bool = True) -> None:
        self.name = name
        self.plan_includes_api = plan_includes_api
        self.key = ""
        self.postings: dict[str, Posting] = {}

    def publish(self, job: Job | str) -> None:
        """Publish a job or a new version of it; a publicId publishes an unpublished job again."""
        if isinstance(job, str):
            self.postings[job].is_published = True
        else:
            self.postings[job["publicId"]] = Posting(job)

    def unpublish(self, public_id: str) -> None:
        """Hide a job from both operations."""
        self.postings[public_id].is_published = False

    def edit(self, public_id: str, **fields: object) -> None:
        """Change some fields of a job."""
        edited = Posting(self.postings[public_id].job | fields)
        edited.is_published = self.postings[public_id].is_published
        self.postings[public_id] = edited

    def published(self) -> list[Posting]:
        """Return the postings that are public, in the order of their first publication."""
        # The copy is atomic, so another thread may publish a job during the iteration.
        return [posting for posting in list(self.postings.values()) if posting.is_published]

    def find(self, public_id: str) -> Posting | None:
        """Return the posting with this publicId if it is public."""
        posting = self.postings.get(public_id)
        return posting if posting and posting.is_published else None
