"""Streams that are whole snapshots, and replace the last one only when they are complete."""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from singer_sdk import SchemaDirectory, StreamSchema
from singer_sdk.batch import Batcher
from singer_sdk.exceptions import MappingError
from singer_sdk.helpers.conform import TypeConformanceLevel
from singer_sdk.mapper import RemoveRecordTransform
from typing_extensions import override

from tap_public_jobs import schemas
from tap_public_jobs.client import PublicJobsStream
from tap_public_jobs.columns import Columns
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.ledger import LATEST
from tap_public_jobs.naming import named

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from singer_sdk import Stream
    from singer_sdk.helpers._batch import BaseBatchFileEncoding, BatchConfig
    from singer_sdk.helpers.types import Context
    from singer_sdk.singerlib.messages import RecordMessage


class _NamedSchema(StreamSchema[str]):
    """A schema whose columns are named as the setting `column_naming` says."""

    def __init__(self) -> None:
        super().__init__(SchemaDirectory(schemas))
        self._named: dict[tuple[str, str], dict[str, Any]] = {}

    @override
    def get_stream_schema(self, stream: Stream, stream_class: type[Stream]) -> dict[str, Any]:
        naming = stream.config["column_naming"]
        key = stream.name, naming
        if key not in self._named:  # the SDK asks twice a record
            self._named[key] = named(super().get_stream_schema(stream, stream_class), naming)
        return self._named[key]


class SnapshotStream(PublicJobsStream):
    """A stream whose records are all there is, so that the target may remove any other row.

    The SDK writes ACTIVATE_VERSION before the records, and a target that obeys it deletes every
    row that a crashed run did not come to. Here it is written after the last record, and only if
    the snapshot is complete. That takes some names private to the SDK; CONTRIBUTING.md lists them.
    """

    schema = _NamedSchema()
    primary_keys = ("id",)

    # `Columns` has already seen to the types. The SDK would turn "no" into true for a boolean, and
    # a number beyond the range of a float into null.
    TYPE_CONFORMANCE_LEVEL = TypeConformanceLevel.NONE

    emit_activate_version_messages = False

    in_batches = False
    """Whether records go to files, which are announced later than the records are taken."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether the records written are all that the API has."""

    @property
    @abstractmethod
    def problems(self) -> list[str]:
        """What was left out and why, in words; a run with problems ends with exit status 1."""

    @property
    @abstractmethod
    def unpublished(self) -> list[str]:
        """Ids of the jobs that are no longer published, and whose rows do not tell yet."""

    @cached_property
    def columns(self) -> Columns:
        """The columns that the effective schema declares."""
        return Columns(
            self.effective_schema["properties"],
            self._warn_of_misfit,
            self.config["column_naming"],
        )

    @property
    def row_form(self) -> list[Any]:
        """What rows are made of: the selected columns, and what the SDK makes of them."""
        properties = self.effective_schema["properties"]
        selected = [name for name in properties if self.mask.get(("properties", name), True)]
        names = ("stream_maps", "flattening_enabled", "flattening_max_depth")
        return [sorted(selected), *(self.config.get(name) for name in names)]

    @override
    def _sync_records(
        self, context: Context | None = None, *, write_messages: bool = True
    ) -> Generator[dict[str, Any], Any, Any]:
        if all(isinstance(stream_map, RemoveRecordTransform) for stream_map in self.stream_maps):
            return  # stream_maps removes the stream: nothing of it is worth a request
        version = self.begin()
        # A BATCH file does not tell the version of its rows: activating one would delete them.
        versioned = write_messages and self.config["emit_activate_version_messages"]
        self._stream_version = version if versioned else None
        for record in super()._sync_records(context, write_messages=write_messages):
            self.report.records[self.name] += 1
            yield record
        activates = versioned and self.complete and not self.is_test
        if activates:
            self._write_activate_version_message(version)
        if not write_messages:
            return  # files are announced later: see `get_batches`
        if self.mark_unpublished() and activates:
            self._write_activate_version_message(version)  # for the rows just marked
        self.finish()

    @override
    def _generate_record_messages(
        self, record: dict[str, Any]
    ) -> Generator[RecordMessage, None, None]:
        try:
            yield from super()._generate_record_messages(record)
        except (ArithmeticError, LookupError, MappingError, TypeError, ValueError) as error:
            msg = (
                f"stream_maps cannot be applied to the record of {self.name} with the id "
                f"{record.get('id')!r}: {type(error).__name__}: {error}. Correct its expressions."
            )
            raise PublicJobsError(msg) from error

    @override
    def get_batch_config(self, config: Mapping[str, Any]) -> BatchConfig | None:
        try:
            return super().get_batch_config(config)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            msg = f"batch_config is not what the SDK's documentation of BATCH describes: {error}"
            raise PublicJobsError(msg) from error

    @override
    def _write_state_message(self) -> None:
        self.save()
        super()._write_state_message()

    @override
    def get_batches(
        self, batch_config: BatchConfig, context: Context | None = None
    ) -> Iterable[tuple[BaseBatchFileEncoding, list[str]]]:
        # The SDK writes the records of batches as they are, unselected and unmapped.
        if len(self.stream_maps) > 1:
            msg = (
                f"stream_maps makes several streams of {self.name}, which batch_config cannot "
                "write: remove one of the two settings."
            )
            raise PublicJobsError(msg)
        records = (
            message.record
            for record in self._sync_records(context, write_messages=False)
            for message in self._generate_record_messages(record)
        )
        self.in_batches = True
        manifests = Batcher(self.tap_name, self.name, batch_config).get_batches(records)
        while manifest := self._next_batch(manifests):
            yield batch_config.encoding, manifest
            self.settle()
        self.mark_unpublished()
        self.finish()

    def _next_batch(self, manifests: Iterator[list[str]]) -> list[str] | None:
        try:
            return next(manifests, None)
        except (OSError, TypeError, ValueError) as error:
            msg = f"The files of batch_config cannot be written: {type(error).__name__}: {error}"
            raise PublicJobsError(msg) from error

    def mark_unpublished(self) -> bool:
        """Set `isPublished` to false in the rows of jobs that are no longer published.

        Most targets update the columns of the latest SCHEMA message, so that one with the key and
        the flag alone leaves what else a row holds as it is. The records are of the version before
        this one, and a target that obeys ACTIVATE_VERSION removes their rows at the next.

        Returns:
            Whether there was any.
        """
        if self.is_test or not (job_ids := self.unpublished):
            return False
        flag = self.columns.flag
        # Of these jobs only the key is known. What the expressions of stream_maps make of the other
        # columns is dropped; they only have to find values that they can reckon with.
        blanks = {name: _blank(sub) for name, sub in self.effective_schema["properties"].items()}
        known = [self.columns.row({}, id=job_id, isPublished=False) for job_id in job_ids]
        rows = [blanks | {name: it for name, it in row.items() if it is not None} for row in known]
        for schema in self._generate_schema_messages():
            properties = schema.schema["properties"]
            keys = list(schema.key_properties or ())
            if flag and flag in properties and keys != ["id"]:
                self.log(
                    "Rows of jobs that are no longer published are not marked in %s: its key is "
                    "not id, which is all that is known of these jobs.",
                    schema.stream,
                    level=logging.WARNING,
                )
            elif flag and flag in properties:
                names = [*keys, flag]
                schema.schema = {
                    **schema.schema,
                    "properties": {name: properties[name] for name in names},
                }
                self._tap.write_message(schema)
                for record in self._marks(rows, schema.stream):
                    record.record = {name: record.record[name] for name in names}
                    record.version = record.version and record.version - 1
                    self._tap.write_message(record)
        self.marked()
        return True

    def _marks(self, rows: list[dict[str, Any]], stream: str) -> Iterator[RecordMessage]:
        try:
            for row in rows:
                for record in self._generate_record_messages(dict(row)):
                    if record.stream == stream:
                        yield record
        except PublicJobsError as error:
            self.log(
                "Rows of jobs that are no longer published are not marked: of these jobs only "
                "the key is known, and %s",
                error,
                level=logging.WARNING,
            )

    def announce(self) -> None:
        """Write a state that knows of the rows to come.

        Without it, a crash would leave rows that no later run can set to unpublished.
        """
        if not self.is_test:
            self.save()
            # The stream's own method writes nothing before the first record.
            self._tap.state_writer.write_state(self.tap_state)

    @property
    def is_test(self) -> bool:
        """Whether the SDK only tests the connection, and so keeps no promise of completeness."""
        return self.ABORT_AT_RECORD_COUNT is not None

    def begin(self) -> int:
        """Begin a sync; returns the version of its records."""
        return self.new_version()

    def save(self) -> None:
        """Bring `stream_state` up to date; called before it is written."""

    def settle(self) -> None:
        """Note that all records yielded so far are written."""

    def marked(self) -> None:
        """Note that the rows of the jobs in `unpublished` tell so."""

    def finish(self) -> None:
        """End a sync that came to its end, complete or not."""

    def new_version(self) -> int:
        """Whole seconds since the epoch, and later than any version that the target has seen."""
        last = self.stream_state.get("version")
        version = int(time.time())
        # Whatever became of it in a store of states.
        if isinstance(last, int | float | Decimal) and 0 <= last <= LATEST:
            version = max(version, int(last) + 1)
        self.stream_state["version"] = version
        return version

    def _warn_of_misfit(self, name: str) -> None:
        self.log(
            "Values of %s do not fit the type that the schema declares; they are kept in "
            "additionalFields, and the column is null there.",
            name,
            level=logging.WARNING,
        )


def _blank(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a value of a column's type."""
    blanks = {"string": "", "number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}
    types = schema.get("type", "string")
    names = [types] if isinstance(types, str) else types
    return next((blanks[name] for name in names if name in blanks), None)
