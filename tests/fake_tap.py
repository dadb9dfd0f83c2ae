"""Runs the tap in this process on an API in memory, into models of targets."""

from datetime import UTC, datetime
from typing import Any

from fake_api import FakeApi
from harness import Output, captured, run_tap
from model_target import ModelTarget, plain

from tap_public_jobs.errors import TapError
from tap_public_jobs.notification_log import NotificationLog

# The requests for the list of the fixture `api`.
LIST = ["page 1", "page 2", "page 3", "page 4"]
CONFIG = {
    "api_key": "a-key",
    "base_url": "https://jobs.example.com",
    "max_concurrent_requests": 2,
    "page_size": 3,
}
# The fields to compare, as `plain` names them.
COMPARED = {
    "jobs": ("publicid", "jobtitle"),
    "job_publications": ("publicid",),
    "job_details": ("publicid", "jobtitle", "roleoverview"),
}


class Pipeline:
    """A tap with its targets and its state, run after run, a minute apart.

    Args:
        api: What the tap reads.
        config: Settings that differ from `CONFIG`.

    Attributes:
        targets: A model of each kind of target; all load the same messages.
        state: The state of the last run.
        now: Seconds since the epoch, of the last run.
        times: Of each run.
        output: The messages of the last run.
        error: Why the last run failed, or its status if it was stopped; empty otherwise.
    """

    def __init__(self, api: FakeApi, **config: Any) -> None:
        self.api = api
        self.config = CONFIG | config
        self.targets = {
            "hard": ModelTarget(),
            "soft": ModelTarget(removal="soft"),
            "upsert": ModelTarget(removal="none"),
            "append": ModelTarget("append-only", removal="none"),
            "overwrite": ModelTarget("overwrite", removal="none"),
        }
        self.state: dict[str, Any] = {}
        self.now = 1_800_000_000.0
        self.times: list[datetime] = []
        self.output: Output
        self.error = ""

    @property
    def hard(self) -> ModelTarget:
        """The target that obeys ACTIVATE_VERSION, and deletes."""
        return self.targets["hard"]

    def run(
        self,
        *,
        later: float = 60,
        catalog: dict[str, Any] | None = None,
        upto: int | None = None,
        **config: Any,
    ) -> list[str]:
        """Run the tap once.

        Args:
            later: Seconds since the last run.
            catalog: What to select, if not everything.
            upto: The target dies after it has read this many messages.
            config: Settings of this run.

        Returns:
            The requests.
        """
        self.now += later
        self.times.append(datetime.fromtimestamp(self.now, UTC))
        self.api.requests.clear()
        self.error = ""
        self.sync(self.config | config, catalog)
        messages = self.output.messages[:upto]
        for target in self.targets.values():
            target.read(messages)
        states = self.load(messages)
        self.state = states[-1] if states else self.state
        return [*self.api.requests]

    def sync(self, config: dict[str, Any], catalog: dict[str, Any] | None) -> None:
        """Run the tap, and note its messages and why it failed."""
        now = self.now
        time = {"clock": lambda: now, "sleep": lambda _: None}
        with captured() as self.output:
            try:
                run_tap(config, catalog=catalog, state=self.state, client=self.api, **time)
            except (TapError, SystemExit) as error:
                self.error = str(error)

    def load(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the states among messages that the target has read."""
        return [message["value"] for message in messages if message["type"] == "STATE"]

    def notify(self, *public_ids: str) -> None:
        """Have webhooks name these jobs."""
        log = NotificationLog(f"{self.config['changes_url']}")
        log.append({log.name: public_ids})

    @property
    def sync_state(self) -> dict[str, Any]:
        """What the tap keeps in Singer state."""
        state: dict[str, Any] = self.state.get("bookmarks", {}).get("jobs", {}).get("sync", {})
        return state

    @property
    def closed(self) -> set[str]:
        """The ids of the jobs that were closed, and not published again."""
        return {key for key, (*_, unpublished_at) in self.periods().items() if unpublished_at}

    @property
    def activated(self) -> list[str]:
        """The streams that the last run activated."""
        return [message["stream"] for message in self.output.of("ACTIVATE_VERSION")]

    def truth(self, stream: str) -> dict[str, list[Any]]:
        """The published jobs by id, as far as a stream has to show them."""
        jobs = {key: plain(job) for key, job in self.api.published.items()}
        return {key: [job.get(it) for it in COMPARED[stream]] for key, job in jobs.items()}

    def found(self, target: str, stream: str) -> dict[str, list[Any]]:
        """What a target has of the jobs that are published by the rule."""
        model = self.targets[target]
        rows = {key: plain(row) for key, row in model.rows[stream].items()}
        return {
            key: [rows.get(key, {}).get(it) for it in COMPARED[stream]] for key in model.published()
        }

    def periods(self) -> dict[str, tuple[str | None, str, str, str | None]]:
        """The rows of `job_publications`: four times by id."""
        names = ("openedafter", "firstseenat", "lastseenat", "unpublishedat")
        rows = map(plain, self.targets["upsert"].all("job_publications"))
        return {row["id"]: tuple(row[it] for it in names) for row in rows}

    def runs_of_periods(self) -> dict[str, tuple[int | None, ...]]:
        """The same, with the number of a run for its time, from 1 on."""
        numbers = {time: number for number, time in enumerate(self.times, 1)}
        return {
            key: tuple(None if it is None else numbers[datetime.fromisoformat(it)] for it in times)
            for key, times in self.periods().items()
        }


def first_run(api: FakeApi, catalog: dict[str, Any] | None = None, **config: Any) -> Pipeline:
    """A pipeline after its first run."""
    pipeline = Pipeline(api, **config)
    pipeline.run(catalog=catalog)
    return pipeline
