"""The streams: the only place where the API, the plan of a run and Singer meet."""

from __future__ import annotations

import sys
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

from singer_sdk import SchemaDirectory, Stream, StreamSchema
from singer_sdk.exceptions import MappingError
from singer_sdk.helpers.conform import TypeConformanceLevel
from singer_sdk.mapper import RemoveRecordTransform
from singer_sdk.singerlib import ActivateVersionMessage
from typing_extensions import override

from tap_public_jobs import schemas
from tap_public_jobs.api.models import hash_of
from tap_public_jobs.errors import NotFoundError, PublicJobsError
from tap_public_jobs.records.columns import Columns
from tap_public_jobs.records.naming import named
from tap_public_jobs.records.publications import publication
from tap_public_jobs.sync.outcomes import Outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from singer_sdk import Tap
    from singer_sdk.helpers.types import Context
    from singer_sdk.singerlib import Catalog
    from singer_sdk.singerlib.messages import RecordMessage

    from tap_public_jobs.api.models import JobRef
    from tap_public_jobs.run import Run

Row = dict[str, Any]


class _NamedSchema(StreamSchema[str]):
    """A schema whose columns are named as the setting `column_naming` says."""

    def __init__(self) -> None:
        super().__init__(SchemaDirectory(schemas))
        self._named: dict[tuple[str, str], dict[str, Any]] = {}

    @override
    def get_stream_schema(self, stream: Stream, stream_class: type[Stream]) -> dict[str, Any]:
        naming = stream.config["column_naming"]
        key = stream.name, naming
        if key not in self._named:  # the SDK asks twice per record
            self._named[key] = named(super().get_stream_schema(stream, stream_class), naming)
        return self._named[key]


class PublicJobsStream(Stream):
    """A stream that writes whole records, and activates them only after the last one.

    The SDK writes ACTIVATE_VERSION before the records, and a target that obeys it deletes every row
    that an interrupted run did not reach.
    Here it follows the last record: the SDK resumes `get_records` only after it has written the
    record.

    Args:
        tap: The tap.
        start: Starts the run, or returns the one that has started.
        save: Brings the Singer state up to date with the run.
    """

    schema = _NamedSchema()
    primary_keys = ("id",)

    # `Columns` has already checked the types. The SDK would turn "no" into true for a boolean, and
    # a number beyond the range of a float into null.
    TYPE_CONFORMANCE_LEVEL = TypeConformanceLevel.NONE

    emit_activate_version_messages = False
    STATE_MSG_FREQUENCY = sys.maxsize  # `checkpoint` writes state

    def __init__(self, tap: Tap, start: Callable[[], Run], save: Callable[[], None]) -> None:
        super().__init__(tap)
        self._start = start
        self._save = save

    @abstractmethod
    def rows(self, run: Run) -> Iterator[Row]:
        """Yield the records of a run; resumed after each one is written."""

    def version(self, run: Run) -> int | None:  # noqa: ARG002  # most streams have one
        """Return the version of the records; None if the stream is never activated."""
        return None

    def is_everything(self, run: Run) -> bool:  # noqa: ARG002
        """Whether this version has all records."""
        return False

    @property
    def problems(self) -> list[str]:
        """What is missing and why, one sentence each."""
        return []

    @override
    def get_records(self, context: Context | None) -> Iterator[Row]:
        if all(isinstance(stream_map, RemoveRecordTransform) for stream_map in self.stream_maps):
            return  # no record would be written
        run = self._start()
        activates = self.config["emit_activate_version_messages"]
        version = self.version(run) if activates else None
        self._stream_version = version
        for row in self.rows(run):
            yield row
            run.report.records[self.name] += 1
        if version and self.is_everything(run) and not run.is_sample:
            self._activate(version)
        run.report.new_fields[self.name] = run.state.note_fields(self.name, self.columns.undeclared)
        self._save()

    def checkpoint(self) -> None:
        """Write a STATE message for the records written so far."""
        self._save()
        self._tap.state_writer.write_state(self.tap_state)

    @cached_property
    def columns(self) -> Columns:
        """The columns that the effective schema declares.

        Raises:
            PublicJobsError: A user's own schema does not fit this stream.
        """
        naming = self.config["column_naming"]
        try:
            columns = Columns(self.effective_schema["properties"], self.logger.warning, naming)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            msg = (
                f"The catalog's schema of {self.name} cannot be used: {type(error).__name__}: "
                f"{' '.join(str(error).split())[:200]}. Discover the catalog again."
            )
            raise PublicJobsError(msg) from error
        if not columns.accepts("id", "text"):
            msg = f"The catalog's schema of {self.name} needs the key: a column id of type string."
            raise PublicJobsError(msg)
        return columns

    @override
    def apply_catalog(self, catalog: Catalog) -> None:
        super().apply_catalog(catalog)
        # Each run is a full table: no field of the API could be a replication key.
        self.replication_key = None
        self.forced_replication_method = None

    @property
    def form(self) -> str:
        """A hash of what records are made of: the selected columns, and what the SDK maps.

        Raises:
            PublicJobsError: The catalog does not fit this stream.
        """
        columns = self.columns.names
        selected = [name for name in columns if self.mask.get(("properties", name), True)]
        names = ("stream_maps", "flattening_enabled", "flattening_max_depth")
        return hash_of([sorted(selected), *(self.config.get(name) for name in names)])

    @override
    def _generate_record_messages(self, record: Row) -> Generator[RecordMessage, None, None]:
        try:
            yield from super()._generate_record_messages(record)
        except (ArithmeticError, LookupError, MappingError, TypeError, ValueError) as error:
            msg = (
                f"stream_maps cannot be applied to the record of {self.name} with the id "
                f"{record.get('id')!r}: {type(error).__name__}: {error}. Correct the expression."
            )
            raise PublicJobsError(msg) from error

    def _activate(self, version: int) -> None:
        for stream_map in self.stream_maps:
            if not isinstance(stream_map, RemoveRecordTransform):
                message = ActivateVersionMessage(stream=stream_map.stream_alias, version=version)
                self._tap.write_message(message)


class Jobs(PublicJobsStream):
    """The summaries of all published jobs (API page, "List published jobs")."""

    name = "jobs"

    @override
    def version(self, run: Run) -> int | None:
        return run.state.next_version(self.name, run.clock()) if run.listing else None

    @override
    def is_everything(self, run: Run) -> bool:
        return run.listing is not None and run.listing.is_complete

    @override
    def rows(self, run: Run) -> Iterator[Row]:
        for summary in run.listing.summaries if run.listing else ():
            yield self.columns.row(summary)


class JobPublications(PublicJobsStream):
    """When each job was published. It is history, and so never activated."""

    name = "job_publications"

    @override
    def rows(self, run: Run) -> Iterator[Row]:
        if run.listing is None:
            return
        if not (run.listing.is_complete or run.is_sample):
            self.log("No records: the list of published jobs is not complete.")
            return
        for job_id, period in run.state.periods().items():
            yield self.columns.row(publication(job_id, period))
        run.state.closed.clear()


class JobDetails(PublicJobsStream):
    """The details of the published jobs (API page, "Get a single published job").

    Not a child stream of `jobs`: the SDK would fetch one detail at a time, and write one SCHEMA and
    one STATE message per job.
    """

    name = "job_details"

    def __init__(self, tap: Tap, start: Callable[[], Run], save: Callable[[], None]) -> None:
        super().__init__(tap, start, save)
        self._outcomes = Outcomes()

    @override
    def version(self, run: Run) -> int | None:
        return run.state.versions.get(self.name)

    @override
    def is_everything(self, run: Run) -> bool:
        if run.listing is None or not run.listing.is_complete or self.problems:
            return False
        if not self._outcomes.written and self.config["detail_refresh"] != "all":
            return False  # without new details, the target keeps the others
        return run.state.has_all_details({job.id for job in self._outcomes.unpublished})

    @property
    @override
    def problems(self) -> list[str]:
        return self._outcomes.problems

    @override
    def rows(self, run: Run) -> Iterator[Row]:
        if run.listing is None:
            return
        plan = run.plan()
        outcomes = self._outcomes
        with run.report.fetching(plan, outcomes):
            yield from self._fetched(run, plan.reasons, plan.checkpoint_every)
            if outcomes.not_found:
                listing = run.read_list_again()
                yield from self._fetched(run, outcomes.settle(listing), plan.checkpoint_every)
                outcomes.settle(listing)
        for job in outcomes.unpublished:
            run.state.mark_pending(job.id)  # so that the next run looks for it in the list

    def _fetched(self, run: Run, jobs: Iterable[JobRef], checkpoint_every: int) -> Iterator[Row]:
        for job, detail, error in run.details(jobs):
            if detail:
                yield self.columns.row(detail.document, id=job.id, publicId=job.public_id)
                run.state.note_detail(job, run.clock())
                self._outcomes.note_written()
                if self._outcomes.written % checkpoint_every == 0 and not run.is_sample:
                    self.checkpoint()
            elif isinstance(error, NotFoundError):
                self._outcomes.note_not_found(job, str(error))
            elif self._outcomes.note_failure(job, str(error)):
                run.api.page(1)  # ends the run if the list cannot be read either
