"""Random histories of an organisation and its syncs, against models of five kinds of target."""

from __future__ import annotations

import json
import tempfile
import threading
from functools import cache, partial
from typing import TYPE_CHECKING

from fake_api import FakeApi
from fake_tap import CONFIG, Pipeline
from harness import select_only
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from queries.warehouse import FIELDS

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.errors import RequestError
from tap_public_jobs.sync.state import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable

# The targets whose history of publications is whole.
UPSERTING = ("hard", "upsert", "append")
STREAMS = ("jobs", "job_publications", "job_details")
# The fields to compare, by stream.
COMPARED = {
    "jobs": ("publicId", "jobTitle"), "job_details": ("publicId", "jobTitle", "roleOverview")
}  # fmt: skip
# The times of a row in order, and whether its job was published then.
PERIODS = {
    "opened_after": False, "first_seen_at": True, "last_seen_at": True, "unpublished_at": False
}  # fmt: skip

JOBS = st.sampled_from([f"{number:02}" for number in range(12)])
CHANGES = st.tuples(st.sampled_from(["edit", "edit", "unpublish", "rename"]), JOBS, JOBS)
REQUESTS = st.integers(1, 30)
ANY_REFRESH = st.sampled_from(["all", "changed", "notified"])
SELECTIONS = st.sampled_from([STREAMS, ("jobs", "job_publications"), ("job_details",), STREAMS[1:]])


@cache
def catalog_text(selection: tuple[str, ...]) -> str:
    """Discover the catalog, which is the same whatever has happened."""
    return json.dumps(select_only(CONFIG | {"column_naming": "snake_case"}, *selection))


class Histories(RuleBasedStateMachine):
    """Whatever happens, a complete run makes the tables equal to the API."""

    def __init__(self) -> None:
        super().__init__()
        self.api = FakeApi(page_size=3)
        self.folder = tempfile.TemporaryDirectory()
        changes_url = f"sqlite:///{self.folder.name}/changes.db"
        self.log = ChangeLog(changes_url)
        self.log.append({self.log.name: []})  # makes it
        self.pipeline = self.connect(changes_url=changes_url, column_naming="snake_case")
        self.loaded: dict[str, set[str]] = {"jobs": set(), "job_details": set()}
        self.changes = 0
        # What was published at each listing, before and after each change during its run.
        self.published: dict[str, list[set[str]]] = {}
        # Jobs whose details precede the state that the next run gets, and have not changed since.
        self.paid: set[str] = set()
        self.changed: set[str] = set()
        for number in range(4):
            self.change(("edit", f"{number:02}", ""))

    def connect(self, **config: str) -> Pipeline:
        # One request at a time: Hypothesis counts on the same answers in the same order.
        return Pipeline(self.api, **config, max_concurrent_requests=1)

    def teardown(self) -> None:
        self.api.answers.clear()
        if not self.api.published:  # without a state, an empty list removes nothing
            self.change(("edit", "00", ""))
        self.run("all")
        assert self.run("all", later=HOUR)
        self.check_tables()
        # A resumed run may leave a row of a job that was unpublished in between, until now.
        assert self.run("all", later=HOUR)
        for stream in COMPARED:
            assert self.pipeline.hard.rows[stream].keys() == self.api.published.keys()
            assert self.found("overwrite", stream) == self.truth(stream)
        self.folder.cleanup()

    def truth(self, stream: str) -> dict[str, list[str | None]]:
        jobs = self.api.published.items()
        return {key: [job.get(field) for field in COMPARED[stream]] for key, job in jobs}

    def found(self, target: str, stream: str) -> dict[str, list[str | None]]:
        """What a target has of the jobs that are published by the rule."""
        model = self.pipeline.targets[target]
        rows, columns = model.rows[stream], [FIELDS[stream][it] for it in COMPARED[stream]]
        return {key: [rows.get(key, {}).get(it) for it in columns] for key in model.published()}

    def run(
        self,
        refresh: str,
        selection: tuple[str, ...] = STREAMS,
        upto: int | None = None,
        later: float = 60,
    ) -> bool:
        """Run the tap into the targets; returns whether the run and they came to their ends."""
        self.changed.clear()
        at = self.pipeline.at(minutes_ago=-later / 60)
        self.published[at] = [{*self.api.published}]
        catalog = json.loads(catalog_text(selection))
        self.pipeline.run(catalog=catalog, upto=upto, later=later, detail_refresh=refresh)
        self.check_messages()
        messages = self.pipeline.output.messages[:upto]
        states = [number for number, it in enumerate(messages) if it["type"] == "STATE"]
        self.paid |= {
            it["record"]["id"]
            for it in messages[: max(states, default=0)]
            if (it["type"], it.get("stream")) == ("RECORD", "job_details")
        }
        self.paid -= self.changed
        return not self.pipeline.error and upto is None

    def check_messages(self) -> None:
        """One SCHEMA per stream, whole records, ACTIVATE_VERSION as the last message but STATE."""
        output = self.pipeline.output
        for stream in STREAMS:
            schemas = [message["schema"] for message in output.of("SCHEMA", stream)]
            assert len(schemas) <= 1
            for record in output.records(stream):
                assert record.keys() == schemas[0]["properties"].keys()
            kinds = [m["type"] for m in output.messages if m.get("stream") == stream]
            assert "ACTIVATE_VERSION" not in kinds[:-1]
        assert output.of("ACTIVATE_VERSION", "job_publications") == []

    @rule(change=CHANGES)
    def change(self, change: tuple[str, str, str]) -> None:
        """Change a job that is published, or publish one; then notify of all that it touches."""
        kind, key, other = change
        before, self.changes = {**self.api.published}, self.changes + 1
        if key not in before:
            self.api.publish(key, self.free(key), jobTitle=f"Title {self.changes}")
        elif kind == "unpublish":
            self.api.unpublish(key)
        elif kind == "edit":
            field = ("jobTitle", "roleOverview")[self.changes % 2]  # the list shows one of them
            self.api.edit(key, **{field: f"Text {self.changes}"})
        elif other in before:  # they swap their publicIds
            ids = before[key]["publicId"], before[other]["publicId"]
            swapped = {
                one: before[one] | {"publicId": it}
                for one, it in zip((other, key), ids, strict=True)
            }
            self.api.published = before | swapped
        else:  # perhaps to what was another job's
            self.api.edit(key, publicId=self.free(other))
        touched = {key, other} if kind == "rename" else {key}
        jobs = [jobs[it] for jobs in (before, self.api.published) for it in touched if it in jobs]
        self.changed |= touched
        self.paid -= touched
        if self.published:
            self.published[max(self.published)].append({*self.api.published})
        self.log.append({self.log.name: {job["publicId"] for job in jobs}})

    def free(self, key: str) -> str:
        """Return the publicId that is named like a job, or a new one if it is taken."""
        taken = {job["publicId"] for job in self.api.published.values()}
        return f"pub-{key}" if f"pub-{key}" not in taken else f"pub-{key}-{self.changes}"

    @rule(refresh=ANY_REFRESH, selection=SELECTIONS)
    def sync(self, refresh: str, selection: tuple[str, ...]) -> None:
        """While nothing changes, nothing is missed, and no detail is paid for twice.

        But for one, whose answer shows that the 404 of a job that is gone means something.
        """
        paid = {*self.paid}
        if not self.run(refresh, selection):
            assert "known jobs at once" in self.pipeline.error
            assert self.run(refresh, selection, later=HOUR)
        details = {*self.api.details}
        asked = {key for key, it in self.api.published.items() if it["publicId"] in details}
        is_any_gone = details > {self.api.published[key]["publicId"] for key in asked}
        assert refresh == "all" or len(asked & paid) <= is_any_gone
        if selection == STREAMS:
            self.check_tables()
        if "job_publications" in selection:
            assert self.pipeline.targets["upsert"].published() == self.api.published.keys()
        if "jobs" in selection and self.api.published:
            assert self.pipeline.hard.rows["jobs"].keys() == self.api.published.keys()

    def check_tables(self) -> None:
        """The rule finds what is published, with its content, on every target that upserts."""
        for target in UPSERTING:
            for stream in COMPARED:
                assert self.found(target, stream) == self.truth(stream)

    @rule(refresh=ANY_REFRESH, upto=st.integers(0, 60), selection=SELECTIONS)
    def crash(self, refresh: str, upto: int, selection: tuple[str, ...]) -> None:
        """The target, or the machine, dies after reading this many messages."""
        self.run(refresh, selection, upto)

    @rule(refresh=ANY_REFRESH, changes=st.dictionaries(REQUESTS, CHANGES, min_size=1, max_size=5))
    def sync_while_jobs_change(
        self, refresh: str, changes: dict[int, tuple[str, str, str]]
    ) -> None:
        """The changes come before these requests."""
        self.at_requests({number: partial(self.change, it) for number, it in changes.items()})
        self.run(refresh)
        self.at_requests({})

    def at_requests(self, incidents: dict[int, Callable[[], object]]) -> None:
        """Have something happen before the first, second… request of the next run."""
        lock = threading.Lock()

        def on_request(_: str) -> None:
            with lock:
                incidents.pop(len(self.api.requests), lambda: None)()

        self.api.on_request = on_request

    @rule(refresh=ANY_REFRESH, key=JOBS, later=st.sampled_from([60, HOUR, 24 * HOUR]))
    def fail(self, refresh: str, key: str, later: float) -> None:
        """One detail fails all its tries; the run goes on and ends incomplete."""
        if job := self.api.published.get(key):
            self.api.answers[job["publicId"]] = RequestError("the response is 500", 500)
            self.run(refresh, later=later)
            self.api.answers.clear()
            self.paid.discard(key)

    def known(self) -> list[str]:
        """Ids of the published jobs that the state knows, under the publicIds that they have."""
        bookmarks = self.pipeline.state.get("bookmarks", {})
        rows = bookmarks.get("jobs", {}).get("sync", {}).get("jobs", [])
        ids = {key: job["publicId"] for key, job in self.api.published.items()}
        return sorted(key for key, public_id, *_ in rows if ids.get(key) == public_id)

    @rule(refresh=ANY_REFRESH, data=st.data())
    @precondition(lambda self: self.known())
    def hide(self, refresh: str, data: st.DataObject) -> None:
        """The list and its total lack jobs that are published."""
        self.api.hidden = data.draw(st.sets(st.sampled_from(self.known())))
        self.run(refresh)
        self.api.hidden = set()
        self.paid.clear()
        self.log.append({self.log.name: [job["publicId"] for job in self.api.published.values()]})

    @rule()
    def lose_state(self) -> None:
        self.pipeline.state = {}
        self.paid.clear()

    @invariant()
    def what_is_published_is_never_lost(self) -> None:
        """Once it was loaded, a job stays for as long as it is published."""
        for stream, loaded in self.loaded.items():
            rows = {*self.pipeline.hard.rows[stream]}
            assert rows >= loaded & self.api.published.keys() - self.changed
            self.loaded[stream] = rows & self.api.published.keys()

    @invariant()
    def every_time_is_true(self) -> None:
        """A job was published when it was seen, and was not when it was not."""
        for target in UPSERTING:
            for row in self.pipeline.targets[target].rows["job_publications"].values():
                for column, is_published in PERIODS.items():
                    states = self.published.get(row[column], [])
                    assert not row[column] or is_published in {row["id"] in it for it in states}
                times = [row[column] for column in PERIODS if row[column]]
                assert times == sorted(times)
                assert row["unpublished_at"] != row["last_seen_at"]
