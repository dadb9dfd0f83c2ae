"""The tap: settings in, Singer messages out."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from singer_sdk import Tap
from singer_sdk.exceptions import ConfigValidationError
from typing_extensions import override

from tap_public_jobs import settings
from tap_public_jobs.command import Command, WholeMessageWriter
from tap_public_jobs.connection import Connection
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.report import Report
from tap_public_jobs.streams import JobDetails, Jobs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    import click
    from singer_sdk import Stream

    from tap_public_jobs.snapshot import SnapshotStream

logger = logging.getLogger(__name__)


class TapPublicJobs(Tap):
    """Singer tap for the Public Jobs API."""

    name = "tap-public-jobs"
    config_jsonschema: ClassVar[dict[str, Any]] = settings.CONFIG_JSONSCHEMA
    message_writer_class = WholeMessageWriter
    message_writer: WholeMessageWriter
    _details: JobDetails | None = None

    def __init__(
        self,
        *,
        config: dict[str, Any] | None = None,
        parse_env_config: bool = False,
        **kwargs: Any,  # noqa: ANN401  # as the SDK has them
    ) -> None:
        if parse_env_config:
            self.append_builtin_config(self.config_jsonschema)
            config = (config or {}) | settings.from_environment(
                self.config_jsonschema, "TAP_PUBLIC_JOBS_"
            )
        try:
            super().__init__(config=config, **kwargs)
        except (AttributeError, KeyError, TypeError) as error:
            if not kwargs.get("catalog") and not kwargs.get("state"):
                raise
            msg = f"The catalog or the state is damaged: {type(error).__name__}: {error}"
            raise PublicJobsError(msg) from error

    @cached_property
    def report(self) -> Report:
        """What happens in this run."""
        return Report()

    @cached_property
    def connection(self) -> Connection:
        """What the streams share on the wire."""
        return Connection(self.config, self.report)

    @override
    def discover_streams(self) -> Sequence[Stream]:
        jobs = Jobs(self, self.connection)
        self._details = JobDetails(self, self.connection, jobs)
        return [jobs, self._details]

    @property
    @override
    def streams(self) -> dict[str, Stream]:
        # The SDK syncs in the order of names. `jobs` goes first: it is complete within seconds, and
        # its listing is what `job_details` works through.
        streams = super().streams
        return {name: streams[name] for name in (Jobs.name, JobDetails.name)}

    @property
    def snapshots(self) -> list[SnapshotStream]:
        """The streams, as what they are."""
        return list(self.streams.values())  # type: ignore[arg-type]

    # Final in the SDK, which has no hook for the end of a run.
    @override  # type: ignore[misc]
    def sync_all(self) -> None:
        """Sync the selected streams, sum up, and own up to what was left out.

        Raises:
            PublicJobsError: Something was left out, or the run could not go on.
        """
        try:
            if self.streams[JobDetails.name].selected and self._details:
                self._details.read_changes()
            super().sync_all()
        except (PublicJobsError, SystemExit):
            # What is paid for and written need not be fetched again.
            for stream in self.snapshots:
                stream.save()
            self.state_writer.write_state(self.state)
            raise
        finally:
            throttle = self.connection.throttle
            throttle.close()
            logger.info(
                "%s",
                self.report.summary(requests=throttle.requests, rejections=throttle.rejections),
            )
        problems = [problem for stream in self.snapshots for problem in stream.problems]
        if problems:
            raise PublicJobsError(_incomplete(problems))

    @override
    def load_state(self, state: dict[str, Any]) -> None:
        bookmarks = state.get("bookmarks", {})
        if not isinstance(bookmarks, dict) or not all(map(_is_bookmark, bookmarks.values())):
            logger.warning("The state is damaged and set aside; this run starts afresh.")
            return
        super().load_state(state)

    @classmethod
    @override
    def cb_config(cls, ctx: click.Context, param: click.Option, value: tuple[str, ...]) -> Any:
        try:
            return super().cb_config(ctx, param, value)
        except (OSError, ValueError, TypeError) as error:
            # Somebody may have given the settings themselves, the key among them.
            names = " ".join(name if "{" not in name else "…" for name in value)
            msg = f"--config {names} is not a file with a JSON object: {type(error).__name__}"
            raise PublicJobsError(msg) from error

    @classmethod
    @override
    def get_singer_command(cls) -> click.Command:
        return Command.like(super().get_singer_command(), cls.logger)

    @override
    def _validate_config(self, *, raise_errors: bool = True) -> list[str]:
        # The SDK's messages quote the value, which may be the key, and not what is allowed.
        self.append_builtin_config(self.config_jsonschema)
        self._config = settings.with_defaults(self._config)
        errors = settings.problems(self._config, self.config_jsonschema)
        if errors and raise_errors:
            summary = "; ".join(errors)
            raise ConfigValidationError(summary, errors=errors, schema=self.config_jsonschema)
        return errors

    @override
    def _handle_termination(self, signum: int, frame: FrameType | None) -> None:
        # The SDK exits with status 0, which a scheduler takes for success.
        self.message_writer.exit_soon(128 + signum)
        if not (self._details and self._details.stop(128 + signum)):
            self.message_writer.stop(128 + signum)


def _is_bookmark(value: object) -> bool:
    # Of the SDK's own, which this tap never writes, a wrong type would end in a traceback.
    return isinstance(value, dict) and not value.keys() & {"partitions", "progress_markers"}


def _incomplete(problems: list[str], most: int = 10) -> str:
    more = f"; and {len(problems) - most:,} more" if len(problems) > most else ""
    return (
        f"The sync is incomplete, so no row was removed where one may be missing: "
        f"{'; '.join(problems[:most])}{more}. Run again; what stays wrong is for the API's support."
    )
