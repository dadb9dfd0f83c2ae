"""Schedules: the retry, alerts and pings, signals, the lock, and whatever breaks."""

import errno
import json
import signal
import socket
import time
import types
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from public_jobs_pipeline import schedule
from public_jobs_pipeline.meltano import Interrupted
from stand_ins import CASES, PROGRAMS, ProjectAtWork, lines_until

MINUTE = 60
WAIT = "sleep 720"
PING = [("GET", "https://secret")]
REFUSED = "The load failed: The API refused the key."
NO_BUILD = "The build failed: Database Error in model open_jobs no space"
FAILING = Path(".meltano/failing.json")


def listed(hours: int) -> str:
    """The last line of a build whose list was read so long ago."""
    at = datetime.now(UTC) - timedelta(hours=hours)
    return f"public_jobs: 30 models success; acme was last listed at {at:%Y-%m-%d %H:%M}\n"


@pytest.mark.parametrize("webhooks", [False, True])
def test_an_alert_is_a_failed_retry(project: ProjectAtWork, webhooks: bool) -> None:
    """A ping is a success, also of a retry."""
    project.answer(warehouse="postgres", schedule="systemd", webhooks=webhooks)
    project.write("states/prod:tap-public-jobs-to-target-postgres:acme_jobs", "[1]")
    build = "invoke dbt-postgres:build"
    load = "changed run" if webhooks else "run"

    def run(loads: str, fails: str = "none") -> tuple[int, list[str]]:
        return project.run("sync", "--scheduled", LOADS=loads, FAILS=fails)[:2]

    project.write("built", listed(hours=71))
    FAILING.write_text("[1, 1]", "utf-8")
    assert run("done") == (0, [load, build])
    assert project.heard == PING
    assert not FAILING.exists()
    assert run("empty", "first build") == (0, [load, build, WAIT, build])
    assert run("incomplete done") == (0, [load, build, WAIT, load, build])
    assert (project.heard, project.errors) == (PING, "")
    # A load that was complete is not repeated for the build.
    for loads, fails, calls, says in (
        ("refused refused", "none", [load, WAIT, load], REFUSED),
        ("done", "build", [load, build, WAIT, build], NO_BUILD),
        (
            "done",
            "none",
            [load, build, WAIT, build],
            "The tables are old: acme was last listed at ",
        ),
    ):
        project.write("built", listed(hours=73 if fails == "none" else 71))
        assert run(loads, fails) == (1, calls)
        ((title, message),) = project.heard
        reason, where = message.splitlines()
        assert title == "acme failed"
        assert reason.startswith(says)
        assert where.startswith(f"Host: {socket.gethostname()}, project: acme. Log: journalctl ")
        assert ("acme-jobs-news.service" in where) is webhooks
        assert project.errors == f"{message}\n"
    # While nothing is published, no row is new, and that is no reason for an alert.
    assert run("empty") == (0, [load, build])
    # Where runs of --if-news read it.
    assert Path(".meltano/state.json").exists() is webhooks


def test_a_project_without_messages_says_how_to_get_them(
    project: ProjectAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)

    assert project.run("check")[0] == 1
    assert "--data alert=message" in project.errors
    assert project.run("sync", "--scheduled", LOADS="refused refused")[0] == 1
    reason, _, sent = project.errors.splitlines()
    assert reason == REFUSED
    assert sent.startswith(
        "No alert was sent. This project is not set up to send messages to ALERT"
    )


def test_an_address_for_pings_that_cannot_be_is_not_shown(
    project: ProjectAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_url(url: str, **_: Any) -> None:
        message = f"no such address: {url}"
        raise ValueError(message)

    monkeypatch.setattr("urllib.request.urlopen", open_url)

    assert project.run("sync", "--scheduled", LOADS="done")[0] == 0  # `run` looks for the secret
    assert project.errors == "PING_URL was not reached: ValueError\n"


@pytest.mark.parametrize("case", CASES["frequent"].values(), ids=CASES["frequent"])
def test_a_frequent_schedule_alerts_once_it_has_failed_for_twelve_minutes(
    project: ProjectAtWork, case: dict[str, Any]
) -> None:
    """In minutes: since when the runs fail, and when the last alert was, before and after."""
    now = time.time()

    def times(minutes_ago: list[int | None]) -> list[float]:
        return [now - MINUTE * age if age is not None else 0 for age in minutes_ago]

    if case["before"]:
        FAILING.write_text(json.dumps(times(case["before"])), "utf-8")

    status, calls, _ = project.run("sync", "--if-news", LOADS=case["load"], NEWS=str(case["news"]))

    assert status == (case["load"] != "done")
    assert calls.count("notified run") == case["runs"]
    assert WAIT not in calls
    assert len(project.heard) == case["alerts"]
    assert FAILING.exists() == bool(case["after"])
    if case["after"]:
        written = json.loads(FAILING.read_text("utf-8"))
        assert written == pytest.approx(times(case["after"]), abs=MINUTE / 2)


def test_a_frequent_schedule_alerts_although_the_clock_was_ahead(
    project: ProjectAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For three days, in which it failed and alerted, and then it was set right."""

    def alerts(minute: int) -> int:
        clock = types.SimpleNamespace(time=lambda: 1e9 + minute * MINUTE)
        monkeypatch.setattr("public_jobs_pipeline.alerts.time", clock)
        assert project.run("sync", "--if-news", LOADS="refused")[0] == 1
        return len(project.heard)

    ahead = 3 * 24 * 60
    assert [alerts(ahead + it) for it in (0, 13, 14)] == [0, 1, 0]
    assert [alerts(it) for it in (0, 13, 59, 61, 62)] == [0, 0, 0, 1, 0]
    Path(FAILING).unlink()
    assert [alerts(it) for it in (ahead, 0, 11, 13)] == [0, 0, 0, 1]


def test_a_note_of_failures_that_cannot_be_written_breaks_no_run(project: ProjectAtWork) -> None:
    """It is another user's, or the disk is full. The nightly run alerts."""
    FAILING.mkdir()
    status, _, said = project.run("sync", "--if-news", LOADS="refused")
    assert (status, said.partition("\n")[0]) == (1, REFUSED)
    assert project.heard == []


def test_a_variable_of_the_environment_comes_before_that_of_env(project: ProjectAtWork) -> None:
    """Also one of alerts and pings, which no other program reads."""
    project.write(".env", "TAP_PUBLIC_JOBS_API_KEY=key\nPING_URL=https://another\n")

    assert project.run("sync", "--scheduled", LOADS="done")[0] == 0
    assert project.heard == PING
    del project.variables["PING_URL"]
    assert project.run("sync", "--scheduled", LOADS="done")[0] == 0
    assert project.heard == [("GET", "https://another")]


@pytest.mark.parametrize("loads", ["first", "damaged"])
@pytest.mark.parametrize("option", ["", "--scheduled", "--if-news"])
@pytest.mark.parametrize("warehouse", ["duckdb", "snowflake"])
def test_a_state_that_is_lost_is_a_warning_and_an_alert_before_the_build(
    project: ProjectAtWork, loads: str, option: str, warehouse: str
) -> None:
    project.answer(warehouse=warehouse)
    project.write("built", "the build\n")
    options = [option] if option else []
    says = "The state of the runs before is lost, so dates in the raw tables begin anew; "

    # Nothing is lost in a first run, or if there is a state.
    assert project.run("sync", *options, LOADS=loads)[0] == 0
    assert says not in project.output + str(project.heard)
    project.write("history", "public_jobs: history is there\n")
    assert project.run("sync", *options, LOADS="done")[0] == 0
    assert says not in project.output + str(project.heard)

    status, calls, _ = project.run("sync", *options, LOADS=loads)
    assert status == 0
    mode = ["notified run"] if option == "--if-news" else ["run"]
    assert calls[:3] == [*mode, f"invoke dbt-{warehouse}", f"invoke dbt-{warehouse}:build"]
    before, _, after = project.output.partition("the build")
    assert f"Warning: {says}" in before
    assert f"Warning: {says}" in after
    messages = [text for title, text in project.heard if title == "acme failed"]
    assert [it.startswith(says) for it in messages] == [True] * bool(option)


NEWS = next(name for name in PROGRAMS if "news" in name)


def test_a_frequent_run_reports_that_the_tap_is_not_installed(project: ProjectAtWork) -> None:
    Path(NEWS).unlink()

    status, calls, said = project.run("sync", "--if-news", LOADS="missing")

    assert (status, calls) == (1, ["notified run"])
    assert said.startswith("The load failed: Cannot start plugin tap.\n")
    assert said.endswith(" Run ./setup, and then ./sync again.")


def test_a_command_for_news_that_breaks_is_no_absence_of_news(project: ProjectAtWork) -> None:
    assert project.run("sync", "--if-news", LOADS="done", NEWS="1")[1] == []
    project.write(NEWS, "#!/bin/sh\necho ModuleNotFoundError >&2\nexit 1\n")
    assert "notified run" in project.run("sync", "--if-news", LOADS="done")[1]


@pytest.mark.parametrize(
    ("sent", "loads", "status", "alerts"),
    [
        (signal.SIGTERM, "hangs", 143, ""),
        (signal.SIGINT, "hangs", 130, ""),
        (signal.SIGTERM, "refused", 143, ""),  # while it waits for the retry
        (signal.SIGALRM, "hangs", 1, "The run did not end within 345 minutes."),
    ],
)
def test_a_signal_stops_the_tap_and_nothing_is_built(
    project: ProjectAtWork, sent: int, loads: str, status: int, alerts: str
) -> None:
    project.variables["ALERT_URL"] = ""
    with project.start("sync", "--scheduled", LOADS=loads, WAITS="yes") as process:
        list(lines_until(process, "hanging" if loads == "hangs" else "waiting"))
        process.send_signal(sent)
        output, errors = process.communicate()

    assert process.returncode == status
    assert ("the tap stops" in output) == (loads == "hangs")
    # The target ends by itself, with the rows that it has.
    assert ("the target loads what it has" in output) == (loads == "hangs")
    assert "the target is stopped" not in output
    assert "dbt-duckdb" not in " ".join(project.calls())
    assert errors.partition("\n")[0] == alerts


@pytest.mark.usefixtures("project")
def test_the_time_limit_does_not_break_off_what_a_signal_stops() -> None:
    signal.alarm(schedule.TIME_LIMIT)
    with pytest.raises(Interrupted):
        schedule.interrupt(signal.SIGTERM, None)
    assert signal.alarm(0) == 0


def test_a_frequent_run_leaves_a_running_one_alone_and_others_wait_even_if_its_sync_was_killed(
    project: ProjectAtWork,
) -> None:
    with project.start("sync", LOADS="hangs") as process:
        list(lines_until(process, "hanging"))
        process.kill()
        with project.start("sync", LOADS="done") as waiting:
            assert list(lines_until(waiting, "")) == ["Waiting for the run that is still going.\n"]
            for _ in range(2):  # which takes long enough for one that does not wait
                assert project.run("sync", "--if-news", LOADS="done") == (0, [], "")
            project.write(".pipe", "end\n")
            assert "1,040 jobs loaded" in waiting.communicate()[0]


def break_env(_: ProjectAtWork) -> None:
    Path(".env").unlink()
    Path(".env").mkdir()


def fill_the_disk(project: ProjectAtWork) -> None:
    Path(".meltano/state.new").symlink_to("/dev/full")

    def write(_: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    project.patch.setattr("sys.stderr", types.SimpleNamespace(write=write))


def remove_meltano(_: ProjectAtWork) -> None:
    Path(".venv/bin/meltano").unlink()


def lose_the_answers(_: ProjectAtWork) -> None:
    Path(".copier-answers.yml").unlink()


def encode_the_answers(_: ProjectAtWork) -> None:
    Path(".copier-answers.yml").write_text("name: für\n", "utf-16")


def break_in_another_way(project: ProjectAtWork) -> None:
    def flock(*_: Any) -> None:
        message = "https://me:secret@host"
        raise ValueError(message)

    project.patch.setattr("fcntl.flock", flock)


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (break_env, ".env cannot be read by "),
        (fill_the_disk, "No space left on device"),
        (break_in_another_way, "The run broke off: ValueError. If"),
        (remove_meltano, "No such file or directory (.venv/bin/meltano)"),
        (
            lose_the_answers,
            ".copier-answers.yml is missing or damaged: take it from git again, or ",
        ),
        (
            encode_the_answers,
            ".copier-answers.yml is missing or damaged: take it from git again, or ",
        ),
    ],
)
def test_whatever_breaks_a_schedule_is_an_alert_and_no_traceback(
    project: ProjectAtWork, harm: Callable[[ProjectAtWork], None], says: str
) -> None:
    """And an alert of a frequent one once it has failed for twelve minutes, if odd times say so."""
    project.answer(schedule="cron", webhooks=True)
    project.write("states/prod:tap-public-jobs-to-target-duckdb:acme_jobs", "[1]")
    harm(project)

    for option, times in ("--scheduled", '{"a": 1}'), ("--if-news", f"[1, {time.time() + 1e6}]"):
        FAILING.write_text(times, "utf-8")
        status, _, said = project.run("sync", option, LOADS="done")
        assert status == 1
        assert "Traceback" not in said + project.errors
        messages = [text for _, text in project.heard]
        assert [says in text for text in messages] == [True] * (option == "--scheduled")
    FAILING.write_text("[1, 0]", "utf-8")
    assert project.run("sync", "--if-news", LOADS="done")[0] == 1
    assert [says in text for _, text in project.heard] == [True]


@pytest.mark.parametrize(
    ("name", "owner", "says"),
    [
        (["me"], "me", "If it is another user's, as after a run as root: sudo chown -R me '"),
        (["me"], "public-jobs", "The project belongs to public-jobs: run this as that user, as "),
        ([], "public-jobs", "The project belongs to public-jobs: run this as that user, as "),
    ],
    ids=["my own project", "that of another", "a user without a name, as clusters have them"],
)
def test_files_of_another_user_are_an_alert_of_a_schedule(
    project: ProjectAtWork,
    monkeypatch: pytest.MonkeyPatch,
    name: list[str],
    owner: str,
    says: str,
) -> None:
    """As after a run by hand as root; and a project is not given away to whoever runs it."""

    def flock(*_: Any) -> None:
        error = PermissionError(13, "Permission denied", ".lock")
        raise error

    monkeypatch.setattr("fcntl.flock", flock)
    monkeypatch.setattr("getpass.getuser", lambda: dict(enumerate(name))[0])
    monkeypatch.setattr(Path, "owner", lambda _: owner)

    for options, alerts in ([], 0), (["--scheduled"], 1), (["--if-news"], 0):
        assert project.run("sync", *options)[0] == 1
        assert [text.partition(":")[0] for _, text in project.heard] == (
            [".lock cannot be used"] * alerts
        )
        assert (says in project.errors) is (options != ["--if-news"])
        assert ("chown" in project.errors) <= (owner == "me")
