"""The streams: where a run and Singer meet."""

import logging
import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from functools import cached_property
from typing import Any

from singer_sdk import SchemaDirectory, Stream, Tap
from singer_sdk.helpers.conform import TypeConformanceLevel
from singer_sdk.helpers.types import Context
from singer_sdk.mapper import RemoveRecordTransform, StreamMap
from singer_sdk.singerlib import Catalog
from singer_sdk.singerlib.messages import RecordMessage
from typing_extensions import override

from tap_public_jobs import schemas
from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import described, quoted, shortened
from tap_public_jobs.singer.columns import Columns
from tap_public_jobs.singer.naming import named
from tap_public_jobs.sync.publications import publication_record
from tap_public_jobs.sync.run import Run
from tap_public_jobs.sync.source import KEYS, hash_of

logger = logging.getLogger(__name__)

Row = dict[str, Any]

# Its column as text holds nothing but JSON arrays, so that SQL can always parse it.
QUESTIONS = "knockoutQuestions"

# One file for each stream, with the API's names.
SCHEMAS = SchemaDirectory(schemas)


class PublicJobsStream(Stream):
    """A stream that writes whole records, and activates them only after the last one.

    The SDK writes ACTIVATE_VERSION before the records, and a target that obeys it deletes every row
    that an interrupted run did not reach.
    Here it follows the last record: the SDK resumes `get_records` only after it has written the
    record.

    Args:
        tap: The tap.
        shared_run: Returns the run that all streams share, which starts when the first one asks for
            it; None if there is no work.
    """

    primary_keys = ("id",)

    # `Columns` has already checked the types. The SDK would turn "no" into true for a boolean, and
    # a number beyond the range of a float into null.
    TYPE_CONFORMANCE_LEVEL = TypeConformanceLevel.NONE

    emit_activate_version_messages = False

    # The run writes checkpoints. If the SDK also wrote a state after each 10,000 records, the size
    # of all states together would grow with the square of the number of jobs.
    STATE_MSG_FREQUENCY = sys.maxsize

    def __init__(self, tap: Tap, shared_run: Callable[[], Run | None]) -> None:
        schema = SCHEMAS.get_schema(self.name)
        super().__init__(tap, schema=named(schema, tap.config["column_naming"]))
        self._shared_run = shared_run

    @abstractmethod
    def rows(self, run: Run) -> Iterator[Row]:
        """Yield the records of a run; resumed after each one is written."""

    @override
    def get_records(self, context: Context | None) -> Iterator[Row]:
        run = self._shared_run() if self.writes_records else None
        if run is None:
            return
        activates = self.config["emit_activate_version_messages"]
        self._stream_version = version = run.version_of(self.name) if activates else None
        for row in self.rows(run):
            yield row
            run.note_record(self.name)
        if version and run.has_everything(self.name):
            # Private: the SDK has no other way to write it after the records.
            self._write_activate_version_message(version)
        run.end_stream(self.name, self.columns.undeclared)

    @property
    def writes_records(self) -> bool:
        """Whether the stream is selected, and not removed by `stream_maps`."""
        maps = self.stream_maps
        return self.selected and not all(isinstance(each, RemoveRecordTransform) for each in maps)

    @cached_property
    def columns(self) -> Columns:
        """The columns that the effective schema declares."""
        properties = self.effective_schema["properties"]
        warn = self.logger.warning
        return Columns(properties, warn, self.left_out, keys=KEYS, arrays=[QUESTIONS])

    @cached_property
    def _written_columns(self) -> dict[str, Collection[str]]:
        return {it.stream_alias: it.transformed_schema["properties"].keys() for it in self._writing}

    @property
    def _writing(self) -> list[StreamMap]:
        return [it for it in self.stream_maps if not isinstance(it, RemoveRecordTransform)]

    @property
    def left_out(self) -> list[str]:
        """The columns that are deselected, or that `stream_maps` remove."""
        properties = self.effective_schema["properties"]

        def is_written(column: str, each: StreamMap) -> bool:
            # Flattening replaces an object by columns such as salary__min, and shortens long names.
            flat = each.flatten_schema({"properties": {column: properties[column]}})["properties"]
            return not {column, *flat}.isdisjoint(each.transformed_schema["properties"])

        return [it for it in properties if not any(is_written(it, each) for each in self._writing)]

    @override
    def apply_catalog(self, catalog: Catalog) -> None:
        super().apply_catalog(catalog)
        # Each run is a full table: no field of the API could be a replication key.
        self.replication_key = None
        self.forced_replication_method = None

    @property
    def form(self) -> str:
        """A hash of what records are made of: columns, selection, and what the SDK maps."""
        mapping = {
            name: value
            for name, value in self.config.items()
            if name.startswith(("stream_map", "flattening", "faker", "emit_activate"))
            or (name == "withheld_fields" and value)  # states are older than the setting
        }
        columns = {
            name: {key: it for key, it in schema.items() if key != "description"}
            for name, schema in self.columns.properties.items()
            if self.mask.get(("properties", name), True)
        }
        return hash_of([columns, mapping])

    @override
    def generate_child_contexts(self, record: Row, context: Context | None) -> Iterator[Any]:
        """Yield none: the SDK yields one even without child streams.

        For it, it would apply the filter of `stream_maps`, and an error would not name the record.
        """
        yield from ()

    @override
    def _generate_record_messages(self, record: Row) -> Generator[RecordMessage, None, None]:
        try:
            for message in super()._generate_record_messages(record):
                columns = self._written_columns[message.stream]
                # Flattening keeps an object that is null, for which there is no column then, and
                # target-csv stops at its name.
                for name in message.record.keys() - columns:
                    del message.record[name]
                yield message
        except Exception as error:  # whatever the expression raises
            msg = (
                f"stream_maps cannot be applied to the record of {self.name} with the id "
                f"{quoted(record.get('id'))}: {described(error)}. Correct the expression."
            )
            raise SetupError(msg) from error


class Jobs(PublicJobsStream):
    """The summaries of all published jobs (API page, "List published jobs")."""

    name = "jobs"

    @override
    def rows(self, run: Run) -> Iterator[Row]:
        return map(self.columns.row, run.summaries)


class JobPublications(PublicJobsStream):
    """When each job was published. It is history, and so never activated."""

    name = "job_publications"

    @override
    def rows(self, run: Run) -> Iterator[Row]:
        return (self.columns.row(publication_record(*job)) for job in run.publications())


class JobDetails(PublicJobsStream):
    """The details of the published jobs (API page, "Get a single published job").

    Not a child stream of `jobs`: the SDK would fetch one detail at a time, and write one SCHEMA and
    one STATE message per job.
    """

    name = "job_details"

    @override
    def rows(self, run: Run) -> Iterator[Row]:
        for job, detail in run.details():
            yield self.columns.row(detail, id=job.id, publicId=job.public_id)


# The order in which streams are synced: the fast ones come before the long fan-out.
ORDER = (Jobs, JobPublications, JobDetails)


def log_left_out(streams: Mapping[str, PublicJobsStream]) -> None:
    """Log which streams and columns are left out, so that one that is written by mistake shows."""
    written = {name: stream for name, stream in streams.items() if stream.writes_records}
    left_out = [
        f"the stream {name}" for name in sorted(it.name for it in ORDER) if name not in written
    ]
    for name, stream in written.items():
        if columns := stream.left_out:
            left_out.append(f"{', '.join(map(shortened, columns))} of {name}")
    if left_out:
        logger.info("Left out, as select, the catalog or stream_maps say: %s.", "; ".join(left_out))
