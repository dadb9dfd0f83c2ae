"""Random histories of an organisation and its syncs, against models of five kinds of target."""

import json
import tempfile
import threading
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import cycle
from typing import Any

from fake_api import Document, FakeApi, Total
from fake_tap import COMPARED, CONFIG, Pipeline
from harness import select_only
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.truth import Truth, lost, times_in
from typing_extensions import override

from tap_public_jobs.errors import RequestError
from tap_public_jobs.notification_log import NotificationLog

# The targets whose history of publications is whole.
UPSERTING = ("hard", "upsert", "append")
STREAMS = ("jobs", "job_publications", "job_details")

JOBS = st.sampled_from([f"{number:02}" for number in range(12)])
CHANGES = st.tuples(st.sampled_from(["edit", "edit", "unpublish", "rename"]), JOBS, JOBS)
REQUESTS = st.integers(1, 30)

# Seconds.
HOUR = 3_600
DAY = 24 * HOUR
WEEK = 7 * DAY
# No clock is ahead for longer, and no detail is refreshed later by its own clock.
MOST_AHEAD, OLDEST_DETAIL = 30 * DAY, WEEK

# When a run begins: seconds after the last one, and how far the clock is ahead or, if negative,
# behind; None if that stays as it is.
MOMENTS = st.fixed_dictionaries({
    "later": st.sampled_from([60, 60, 60, HOUR // 2, HOUR, DAY, 3 * WEEK]),
    "ahead": st.sampled_from(
        [*[None] * 8, 0, 0, 2 * HOUR, -2 * HOUR, 3 * DAY, -3 * DAY, MOST_AHEAD, -MOST_AHEAD]
    ),
})  # fmt: skip

# The jobs that one reading of the list does not show, and its total: of the listed jobs, none, or
# how many it counts beyond the published ones.
READINGS = st.tuples(st.sets(st.integers(0, 11)), st.sampled_from(["exact", None, 0, 3, 12]))

ANY_REFRESH = st.sampled_from(["all", "changed", "notified"])
SELECTIONS = st.sampled_from([STREAMS, ("jobs", "job_publications"), ("job_details",), STREAMS[1:]])


@cache
def catalog_text(selection: tuple[str, ...]) -> str:
    """Discover the catalog, which is the same whatever has happened."""
    return json.dumps(select_only(CONFIG | {"column_naming": "snake_case"}, *selection))


class ApiThatCounts(FakeApi):
    """Its list has a field without a column, which is different in every response."""

    @override
    def listed(self) -> list[Document]:
        return [job | {"viewCount": len(self.requests)} for job in super().listed()]


class Histories(RuleBasedStateMachine):
    """Whatever happens, a complete run makes the tables equal to the API."""

    def __init__(self) -> None:
        super().__init__()
        self.api = ApiThatCounts(page_size=3)
        self.folder = tempfile.TemporaryDirectory()
        changes_url = f"sqlite:///{self.folder.name}/changes.db"
        self.log = NotificationLog(changes_url)
        self.log.append({self.log.name: []})  # makes it
        self.pipeline = self.connect(changes_url=changes_url, column_naming="snake_case")
        self.loaded: dict[str, set[str]] = {"jobs": set(), "job_details": set()}
        self.changes = 0
        # What was published before and after each change during the last run.
        self.during: list[set[str]] = []
        self.truth = Truth()
        # How far the clock is ahead, and before which time no run may begin.
        self.ahead, self.earliest = 0.0, 0.0
        # As JSON: a run changes the state that it gets.
        self.states: list[str] = ["{}"]
        # Jobs whose details precede the state that the next run gets, and have not changed since.
        self.paid: set[str] = set()
        self.changed: set[str] = set()
        # How often each job that a webhook names may be looked at again, because its detail may be
        # as it was.
        self.named: dict[str, int] = {}
        for number in range(4):
            self.change(("edit", f"{number:02}", ""))

    def connect(self, **config: str) -> Pipeline:
        # One request at a time: Hypothesis counts on the same answers in the same order.
        settings = {"max_concurrent_requests": 1, "ignored_fields": ["viewCount"]}
        return Pipeline(self.api, **config, **settings)

    def teardown(self) -> None:
        self.api.answers.clear()
        if not self.api.published:  # without a state, an empty list removes nothing
            self.change(("edit", "00", ""))
        self.run("all", ahead=0)
        assert self.run("all", later=HOUR)
        self.check_tables()
        # A resumed run may leave a row of a job that was unpublished in between, until now.
        assert self.run("all", later=HOUR)
        for stream in ("jobs", "job_details"):
            assert self.pipeline.hard.rows[stream].keys() == self.api.published.keys()
            assert self.pipeline.found("overwrite", stream) == self.pipeline.truth(stream)
        for key in self.api.published:  # and nothing notifies of it
            self.api.edit(key, roleOverview="An overview that only its age brings.")
        assert self.run("changed", later=MOST_AHEAD + OLDEST_DETAIL)
        self.check_tables()
        self.every_time_is_true()
        self.folder.cleanup()

    def run(
        self,
        refresh: str,
        selection: tuple[str, ...] = STREAMS,
        upto: int | None = None,
        later: float = 60,
        ahead: float | None = None,
    ) -> bool:
        """Run the tap into the targets; returns whether the run and they came to their ends."""
        self.changed.clear()
        self.during = [{*self.api.published}]
        before, known = self.pipeline.now, times_in(self.pipeline.state)
        passed = later + (self.ahead if ahead is None else ahead) - self.ahead
        passed = max(passed, self.earliest - before)
        self.ahead += passed - later
        catalog = json.loads(catalog_text(selection))
        self.pipeline.run(catalog=catalog, upto=upto, later=passed, detail_refresh=refresh)
        self.check_messages()
        messages = self.pipeline.output.messages[:upto]
        self.truth.note(messages, known, self.during)
        self.states.append(json.dumps(self.pipeline.state))
        states = [number for number, it in enumerate(messages) if it["type"] == "STATE"]
        fetched = {
            it["record"]["id"]
            for it in messages[: max(states, default=0)]
            if (it["type"], it.get("stream")) == ("RECORD", "job_details")
        }
        self.paid |= fetched - self.named.keys()
        self.paid -= self.changed
        looks = {key: looks - (key in fetched) for key, looks in self.named.items()}
        self.named = {key: left for key, left in looks.items() if left}
        self.may_be_looked_at(self.changed)
        if abs(passed) >= DAY:  # a detail may be too old, or from the future
            self.paid.clear()
        is_whole = not self.pipeline.error and upto is None
        if is_whole and "job_publications" in selection:
            self.earliest = 0.0
        return is_whole

    def may_be_looked_at(self, keys: Iterable[str]) -> None:
        """These details may be fetched again in the next run, and once after ten minutes."""
        self.named |= dict.fromkeys(keys, 2)

    def run_twice_if_it_fails(self, refresh: str, moment: dict[str, Any]) -> None:
        """What is wrong fails runs for an hour, however wrong the clock was before."""
        assert self.run(refresh, **moment) or self.run(refresh, later=HOUR)

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
        if kind == "rename":  # perhaps back
            self.may_be_looked_at(touched)
        self.during.append({*self.api.published})
        self.log.append({self.log.name: {job["publicId"] for job in jobs}})

    def free(self, key: str) -> str:
        """Return the publicId that is named like a job, or a new one if it is taken."""
        taken = {job["publicId"] for job in self.api.published.values()}
        return f"pub-{key}" if f"pub-{key}" not in taken else f"pub-{key}-{self.changes}"

    @rule(refresh=ANY_REFRESH, selection=SELECTIONS, moment=MOMENTS)
    def sync(self, refresh: str, selection: tuple[str, ...], moment: dict[str, Any]) -> None:
        """While nothing changes, nothing is missed, and no detail is paid for twice.

        But for one, whose answer shows that the 404 of a job that is gone means something.
        """
        paid = {*self.paid}
        if not self.run(refresh, selection, **moment):
            assert "disappeared from the list at once" in self.pipeline.error
            assert self.run(refresh, selection, later=HOUR)
        paid &= self.paid
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
                found, truth = self.pipeline.found(target, stream), self.pipeline.truth(stream)
                assert found == truth

    @rule(refresh=ANY_REFRESH, upto=st.integers(0, 60), selection=SELECTIONS, moment=MOMENTS)
    def crash(
        self, refresh: str, upto: int, selection: tuple[str, ...], moment: dict[str, Any]
    ) -> None:
        """The target, or the machine, dies after reading this many messages."""
        self.run(refresh, selection, upto, **moment)

    @rule(
        refresh=ANY_REFRESH,
        changes=st.dictionaries(REQUESTS, CHANGES, min_size=1, max_size=5),
        moment=MOMENTS,
    )
    def sync_while_jobs_change(
        self, refresh: str, changes: dict[int, tuple[str, str, str]], moment: dict[str, Any]
    ) -> None:
        """The changes come before these requests."""
        self.at_requests({number: partial(self.change, it) for number, it in changes.items()})
        self.run(refresh, **moment)
        self.at_requests({})

    def at_requests(self, incidents: dict[int, Callable[[], object]]) -> None:
        """Have something happen before the first, second… request of the next run."""
        lock = threading.Lock()

        def on_request(_: str) -> None:
            with lock:
                incidents.pop(len(self.api.requests), lambda: None)()

        self.api.on_request = on_request

    @rule(refresh=ANY_REFRESH, key=JOBS, moment=MOMENTS)
    def fail(self, refresh: str, key: str, moment: dict[str, Any]) -> None:
        """One detail fails all its tries; the run goes on and ends incomplete."""
        if job := self.api.published.get(key):
            self.api.answers[job["publicId"]] = RequestError("the response is 500", 500)
            self.run_twice_if_it_fails(refresh, moment)
            self.api.answers.clear()
            self.paid.discard(key)
            self.may_be_looked_at({key})
            # After an hour only news has a run under `notified` try it again.
            self.log.append({self.log.name: [job["publicId"]]})

    def known(self) -> list[str]:
        """Ids of the published jobs that the state knows, under the publicIds that they have."""
        bookmarks = self.pipeline.state.get("bookmarks", {})
        rows = bookmarks.get("jobs", {}).get("sync", {}).get("jobs", [])
        ids = {key: job["publicId"] for key, job in self.api.published.items()}
        return sorted(key for key, public_id, *_ in rows if ids.get(key) == public_id)

    @rule(refresh=ANY_REFRESH, data=st.data(), moment=MOMENTS)
    @precondition(lambda self: self.known())
    def hide(self, refresh: str, data: st.DataObject, moment: dict[str, Any]) -> None:
        """The list and its total lack jobs that are published."""
        self.api.hidden = data.draw(st.sets(st.sampled_from(self.known())))
        self.run_twice_if_it_fails(refresh, moment)
        self.mend_list()

    @rule(
        refresh=ANY_REFRESH,
        readings=st.lists(READINGS, min_size=1, max_size=6),
        moments=st.lists(MOMENTS, min_size=1, max_size=3),
    )
    def flap(
        self,
        refresh: str,
        readings: list[tuple[set[int], Total]],
        moments: list[dict[str, Any]],
    ) -> None:
        """Each reading of the list lacks other known jobs, and counts others."""
        turns = cycle(readings)
        known: list[str] = []

        def on_request(request: str) -> None:
            if request == "page 1":
                places, total = next(turns)
                self.api.hidden = {key for place, key in enumerate(known) if place in places}
                counted = len(self.api.published)
                self.api.total = counted + total if isinstance(total, int) else total

        self.api.on_request = on_request
        for moment in moments:
            known[:] = self.known()
            self.run(refresh, **moment)
        self.mend_list()

    def mend_list(self) -> None:
        """Show all jobs again; notify of them, because a run may have known that it lacks some."""
        self.api.hidden, self.api.total, self.api.on_request = set(), "exact", lambda _: None
        self.paid.clear()
        self.may_be_looked_at(self.api.published)
        self.log.append({self.log.name: [job["publicId"] for job in self.api.published.values()]})

    @rule(refresh=ANY_REFRESH, key=JOBS)
    def publish_unlisted(self, refresh: str, key: str) -> None:
        """The list counts a new job that it does not show yet: no job opens after such a list."""
        # A cached total may count what was closed within the hour.
        runs = [self.run("changed", later=later) for later in (60, HOUR)]
        if key not in self.api.published and all(runs):
            self.change(("edit", key, ""))
            self.api.hidden, self.api.total = {key}, len(self.api.published)
            self.run(refresh)
            assert not self.pipeline.activated
            self.mend_list()

    @rule(
        refresh=ANY_REFRESH, change=CHANGES, behind=st.lists(st.booleans(), min_size=1, max_size=6)
    )
    def change_one_of_two_replicas(
        self, refresh: str, change: tuple[str, str, str], behind: list[bool]
    ) -> None:
        """Some requests meet a replica that lacks the last change: the next run brings it.

        Whether the run believed the old answers or failed, and without another webhook.
        """
        self.run_twice_if_it_fails("changed", {"later": 60})
        old = {**self.api.published}
        self.change(change)
        new = {**self.api.published}
        turns = cycle(behind)

        def on_request(_: str) -> None:
            self.api.published = {**(old if next(turns) else new)}
            self.during.append({*self.api.published})  # what it shows is true for the run

        self.api.on_request = on_request
        self.run(refresh)
        self.api.on_request, self.api.published = lambda _: None, new
        self.paid.clear()
        self.may_be_looked_at(new)
        assert self.run(refresh), self.pipeline.error
        self.check_tables()

    @rule(data=st.data())
    def restore_state(self, data: st.DataObject) -> None:
        """Go on with any state of an earlier run, or with none; the clock is not behind then.

        If it were, the times of new rows would precede those of rows that no state remembers.
        """
        self.pipeline.state = json.loads(data.draw(st.sampled_from(self.states)))
        self.earliest = self.truth.latest // 1000 + 1
        self.paid.clear()
        self.may_be_looked_at(self.api.published)

    @invariant()
    def what_is_published_is_never_lost(self) -> None:
        """Once it was loaded, a job stays for as long as it is published."""
        for stream, loaded in self.loaded.items():
            rows = self.pipeline.hard.rows[stream].keys()
            assert not lost(loaded, rows, [self.api.published.keys() - self.changed])
            self.loaded[stream] = rows & self.api.published.keys()

    @invariant()
    def every_time_is_true(self) -> None:
        """A job was published when it was seen, and was not when it was not."""
        for target in UPSERTING:
            rows = self.pipeline.targets[target].rows["job_publications"].values()
            assert not [*self.truth.false_times(rows)]
