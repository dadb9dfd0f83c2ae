"""A tap whose settings, files and end are as users need them, which the SDK leaves open."""

import signal
from abc import abstractmethod
from types import FrameType
from typing import Any, ClassVar

from singer_sdk import Tap
from typing_extensions import override

from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import described, hide
from tap_public_jobs.singer.catalog import Keys, wrong_maps
from tap_public_jobs.singer.process import SECONDS_TO_ANSWER, WholeMessageWriter, exit_soon
from tap_public_jobs.singer.settings import Settings


class SingerTap(Tap):
    """A tap on Meltano's SDK.

    Attributes:
        settings: Its settings.
        keys: The key of each of its streams.
    """

    settings: ClassVar[Settings]
    keys: ClassVar[Keys]

    # Files carry no version, so a target could not remove rows after BATCH. A start date, a setting
    # of every tap from singer-sdk 0.55 on, is for streams with a replication key.
    capabilities: ClassVar[list[Any]] = [
        each for each in Tap.capabilities if each.value not in {"batch", "start-date"}
    ]
    message_writer_class = WholeMessageWriter
    message_writer: WholeMessageWriter

    # Whether a run is under way, so that a signal waits for the responses to what has been sent.
    is_syncing = False

    @abstractmethod
    def stop_requests(self, reason: SystemExit) -> None:
        """Send no further request, and end the run with this as its error."""

    def wrong_values(self) -> list[str]:
        """Say which settings are wrong although each fits its schema."""
        return []

    @property
    @override
    # Private: the SDK looks for `.env` above the installed package, and reads "ture" as false.
    def _env_var_config(self) -> dict[str, Any]:
        return self.settings.from_environment()

    @override
    def _validate_config(self, *, raise_errors: bool = True) -> list[str]:
        # Private: the SDK's messages quote the key, and its defaults do not replace null.
        self.settings.warn_of_unused_variables(self._config)
        self._config = self.settings.with_defaults(self._config)
        hide(self.settings.secrets(self._config))
        errors = self.settings.problems(self._config) or self.wrong_values()
        if errors and raise_errors:
            raise SetupError(" ".join(errors))
        return errors

    @override
    def setup_mapper(self) -> None:
        columns: dict[str, Any] = dict.fromkeys(self.keys, ())
        columns |= {
            it.tap_stream_id: it.schema.to_dict()["properties"] for it in self.catalog.streams
        }
        if wrong := [*wrong_maps(self.config.get("stream_maps") or {}, columns)]:
            raise SetupError(" ".join(wrong))
        try:
            super().setup_mapper()
        except Exception as error:  # whatever the SDK raises over a mistake
            msg = f"stream_maps or flattening cannot be applied: {described(error)}."
            raise SetupError(msg) from error

    @override
    def _handle_termination(self, signum: int, frame: FrameType | None) -> None:
        # Private: the SDK exits with status 0, which a scheduler takes for success.
        signal.signal(signum, signal.SIG_IGN)
        status = 128 + signum
        exit_soon(status)
        if not self.is_syncing:
            self.message_writer.stop(status)
        # What has been sent may still be answered.
        self.stop_requests(SystemExit(status))
        signal.signal(signal.SIGALRM, lambda *_: self.message_writer.stop(status))
        signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_ANSWER)
