"""The tap as a process: exit statuses, the one line of an error, signals and pipes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from fake_api import FakeApi, Total
from fake_tap import CONFIG
from forked import Child, Program
from harness import Output, demo, parse, paths
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.limit.fanout import GRACE
from tap_public_jobs.limit.verdict import FEW_TRIES
from tap_public_jobs.singer.process import SECONDS_TO_ANSWER, SECONDS_TO_STOP
from tap_public_jobs.tap import TapPublicJobs

# A process that hangs ends its test, long before the tap gives up on a server that is silent.
pytestmark = pytest.mark.timeout(60)

Config = dict[str, Any]
Tap = list[str] | Program

COMMAND = Path(sys.executable).with_name("tap-public-jobs")
INSTALLED = [str(COMMAND)]
MODULE = [sys.executable, "-m", "tap_public_jobs"]
# The tap as a program that a busy machine cannot end before it has stopped by itself.
PATIENT = """
from tap_public_jobs import __main__
from tap_public_jobs.singer import process
process.SECONDS_TO_STOP = 25.0
__main__.main()
"""


@pytest.fixture(scope="session")
def forked() -> Iterator[Program]:
    """The tap without the second that its imports take, for what does not depend on the start."""
    with closing(Program(COMMAND, "tap_public_jobs.tap")) as program:
        yield program


@pytest.fixture(scope="session")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The same, for runs whose state has to be written however busy the machine is."""
    script = tmp_path_factory.mktemp("patient") / "tap.py"
    script.write_text(PATIENT)
    with closing(Program(script, "tap_public_jobs.tap")) as program:
        yield program


@pytest.fixture(autouse=True)
def _no_signal_is_ignored() -> Iterator[None]:
    """In the background SIGINT is, and processes inherit that."""
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, interrupt)


def environment(config: Config) -> dict[str, str]:
    settings = {f"TAP_PUBLIC_JOBS_{name.upper()}": str(value) for name, value in config.items()}
    return {"PATH": os.environ["PATH"]} | settings


class Command(subprocess.Popen[str]):
    """The tap as a command: it imports all of itself first, as for a user."""

    stdout: IO[str]
    stderr: IO[str]


@contextmanager
def started(
    tap: Tap, *arguments: str, config: Config, **variables: str
) -> Iterator[Command | Child]:
    """Run the tap with pipes that the test reads, and end it with the test."""
    variables = environment(config) | variables
    pipe = subprocess.PIPE
    with (
        tap.start(arguments, variables)
        if isinstance(tap, Program)
        else Command([*tap, *arguments], env=variables, stdout=pipe, stderr=pipe, text=True)
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run(tap: Program, *arguments: str, config: Config) -> subprocess.CompletedProcess[str]:
    """Run the tap to its end."""
    return tap.run(arguments, environment(config))


def complaints(stderr: str) -> list[str]:
    """The lines that are not information."""
    return [
        line for line in stderr.splitlines() if "| INFO " not in line and "| WARNING " not in line
    ]


def test_a_run_ends_with_status_zero_and_a_summary(
    forked: Program, sandbox: Sandbox, config: Config
) -> None:
    done = run(forked, "--config=ENV", config=config)

    assert done.returncode == 0
    assert complaints(done.stderr) == []
    assert (
        "Synced 25 jobs, 25 job_publications, 25 job_details; 28 requests (0 rejections, 0 "
        "retries); details: 25 fetched, 0 unchanged, 0 failed, 0 unpublished during the run; "
    ) in done.stderr
    assert sandbox.key not in done.stdout + done.stderr
    assert len(parse(done.stdout).rows("job_details")) == 25
    assert done.stderr.count('"metric":"record_count"') == 3
    assert len(done.stderr.splitlines()) < 25  # none per request


def test_no_name_from_the_api_forges_a_line(
    forked: Program, sandbox: Sandbox, config: Config
) -> None:
    """Neither a field's nor a job's, in warnings, the summary and the last error."""
    forged = "\r\n2026-11-23 04:00:00,000 | CRITICAL | tap | \x1b[2J\u202eAll rows are lost. "
    first, second = (it.job["publicId"] for it in sandbox.organisation.published()[:2])
    sandbox.edit(first, **{f"{forged}1": 1, f"{forged}{'2' * 500}": "\0"})
    sandbox.edit(second, publicId=forged, jobTitle=["\0"])
    sandbox.fail_next("http_400", times=None, path="CRITICAL")
    done = run(forked, "--config=ENV", config=config)

    lines = done.stderr.removesuffix("\n").split("\n")
    assert [it for it in lines if not re.match(r"[\d-]+ [\d:,]+ \| [A-Z]+ ", it)] == []
    assert [it for it in lines if not it.isprintable()] == []
    assert max(map(len, lines)) < 1000
    (error,) = complaints(done.stderr)
    assert f"the detail of {forged!r} is missing" in error


def test_the_connection_test_asks_for_the_list_and_a_detail_and_logs_one_line(
    forked: Program, sandbox: Sandbox, config: Config
) -> None:
    """One broken job is no reason to refuse a set-up; of three, the key and the list still work."""
    first = [it.job["publicId"] for it in sandbox.organisation.published()[:3]]
    for broken in (0, 1, 3):
        status = int(broken == len(first))
        tries = [(it, FEW_TRIES) for it in first[:broken]] + [(it, 1) for it in first[broken:][:1]]
        for it in first[:broken]:
            sandbox.fail_next("http_400", None, it)
        done = run(forked, "--config=ENV", "--test", config=config)

        assert (done.returncode, done.stdout) == (status, "")
        assert paths(sandbox.requests) == [
            "/jobs?page=1",
            *[f"/jobs/{it}" for it, times in tries for _ in range(times)],
        ]
        works = "The key works: 25 published jobs; a first run takes less than a minute."
        assert [it.endswith(works) for it in done.stderr.splitlines()].count(True) == 1
        refused = [
            f"/{first[-1]}: the response is 400" in it
            and "The list can be read, but no detail" in it
            for it in complaints(done.stderr)
            if "CRITICAL" in it
        ]
        assert refused == [True] * status
        sandbox.requests.clear()


@pytest.mark.parametrize(
    ("jobs", "total", "page_size", "said"),
    [
        (0, "exact", 3, "0 published jobs; a first run takes less than a minute."),
        (1, "exact", 3, "1 published job; a first run takes less than a minute."),
        (3, 5, 3, "5 published jobs; a first run takes less than a minute."),
        (3, None, 3, "3 published jobs; a first run takes less than a minute."),
        (3, 59, 100, "59 published jobs; a first run takes less than a minute."),
        (10, 3_000, 10, "3,000 published jobs; a first run takes about 54 minutes."),
    ],
)
def test_the_connection_test_counts_the_jobs(
    caplog: pytest.LogCaptureFixture, jobs: int, total: Total, page_size: int, said: str
) -> None:
    """As the list does, if it does."""
    api = FakeApi(page_size, jobs=jobs)
    api.total = total
    tap = TapPublicJobs(config=CONFIG)
    vars(tap)["client"] = api
    with caplog.at_level("INFO"):
        assert tap.run_connection_test()

    assert caplog.messages[-1] == f"The key works: {said}"
    assert len(api.requests) == 1 + (jobs > 0)


@pytest.mark.parametrize("arguments", [("--discover",), ("--about",), ("--version",), ("--help",)])
def test_the_tap_describes_itself_without_settings(forked: Program, arguments: tuple[str]) -> None:
    done = run(forked, *arguments, config={})

    assert done.returncode == 0
    assert done.stdout
    assert complaints(done.stderr) == []


NO_MAP = ". stream_maps or flattening cannot be applied: "


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"api_key": "pj_1"}, "The API refused the key (401). Compare TAP_PUBLIC_JOBS_API_KEY in"),
        ({"detail_max_age_days": "NaN"}, ". detail_max_age_days: 'NaN' is not of type 'number'."),
        (
            {"stream_maps": '{"jobs": {"__else__": 1}}'},
            "stream_maps: {'__else__': 1} is not valid u",
        ),
        ({"flattening_enabled": True, "flattening_max_depth": -1}, f"{NO_MAP}ConfigValidationErr"),
        # The key where it does not belong.
        (
            {"stream_maps": '{"jobs": {"x": "%(api_key)s("}}'},
            "Failed to parse expression …( (SyntaxError: '(' was ",
        ),
        ({"base_url": "%(base_url)s/%(api_key)s"}, "/…/api/public/v1/jobs?page=1&pageSize=10: the"),
        (
            {"detail_refresh": "notified", "changes_url": "sqlite:///%(api_key)s"},
            "There is no notification log in …. ",
        ),
    ],
)
@pytest.mark.parametrize("arguments", [(), ("--test",)], ids=["sync", "test"])
def test_a_wrong_setting_is_one_line_without_the_key_and_status_one(
    forked: Program, config: Config, change: Config, said: str, arguments: tuple[str, ...]
) -> None:
    wrong = {name: str(it) % config for name, it in change.items()}
    done = run(forked, "--config=ENV", *arguments, config=config | wrong)

    assert done.returncode == 1
    (line,) = complaints(done.stderr)
    assert "| CRITICAL |" in line
    assert said in line
    assert config["api_key"] not in done.stdout + done.stderr


def catalog(column: Any = None, **stream: Any) -> str:
    """A catalog with one stream, which has a column of its own."""
    properties = {"id": {"type": "string"}, "x": column or {"type": "string"}}
    stream = {"tap_stream_id": "jobs", "schema": {"properties": properties}} | stream
    return json.dumps({"streams": [stream]})


NO_FILE = "cannot be used (No such file or directory). Pass a file with "
LAST_STATE = "Pass a file with only the object in the `value` of the last STATE line."
NO_CATALOG = "). Pass a file with a catalog, as --discover writes it."
NO_STATE = '. --state has no "bookmarks": pass the object in the `value` of the last STATE line of '
OTHER_STATE = ". --state is that of another tap (its stream "


@pytest.mark.parametrize(
    ("option", "content", "said"),
    [
        ("--config", None, NO_FILE),
        ("--catalog", None, NO_FILE),
        ("--state", None, NO_FILE),
        ("--config", "\n{", ": line 2 column 2 (char 2)). Pass a file with one JSON object"),
        ("--config", '{"api_key": "pj_secret-ü"}', "'utf-8' codec can't "),
        ("--state", "\n", f": line 2 column 1 (char 1)). {LAST_STATE}"),
        ("--state", "[1]", f"). {LAST_STATE}"),
        ("--state", '{"bookmarks": {}}\n{}', f": line 2 column 1 (char 18)). {LAST_STATE}"),
        (
            "--state",
            '{"bookmarks": {"issues": {"since": 1}}}',
            f"{OTHER_STATE}'issues' has 'since')",
        ),
        ("--state", '{"bookmarks": {"jobs": {"since": 1}}}', f"{OTHER_STATE}'jobs' has 'since')"),
        ("--state", '{"bookmarks": {"Jobs": {"sync": {}}}}', f"{OTHER_STATE}'Jobs' has 'sync')"),
        ("--state", '{"type": "STATE", "value": {"bookmarks": {}}}', NO_STATE),
        ("--catalog", "[1]", NO_CATALOG),
        ("--catalog", "{}", NO_CATALOG),
        ("--catalog", '{"streams": [{}]}', NO_CATALOG),
        ("--catalog", '{"streams": [1]}', NO_CATALOG),
        ("--catalog", catalog(metadata=5), NO_CATALOG),
        ("--catalog", catalog(schema=5), NO_CATALOG),
        ("--catalog", catalog(schema={}), NO_CATALOG),
        ("--catalog", catalog(tap_stream_id="job"), "there is no stream 'job'"),
        ("--catalog", catalog({"type": 5}), "5 is not valid under any of the given schemas)"),
        ("--catalog", catalog({"type": "banana"}), "'banana' is not valid under any of the given"),
        ("--catalog", catalog({"pattern": "("}), "'(' is not a 'regex')"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(
    forked: Program, config: Config, tmp_path: Path, option: str, content: str | None, said: str
) -> None:
    path = tmp_path / "file.json"
    if content is not None:
        path.write_text(content, "latin-1")

    done = run(forked, "--config=ENV", f"{option}={path}", config=config)

    assert (done.returncode, done.stdout) == (1, "")
    (line,) = complaints(done.stderr)
    assert said in line
    assert f". {option} {path} " in line or said.startswith((NO_STATE, OTHER_STATE))
    assert "pj_secret" not in line


def test_a_catalog_chooses_neither_the_names_of_streams_nor_their_key(
    forked: Program, config: Config, tmp_path: Path
) -> None:
    """Without its key, a target would append each row again in each run."""
    path = tmp_path / "catalog.json"
    selected = {"breadcrumb": [], "metadata": {"selected": True}}
    without_key: list[Config] = [
        {"breadcrumb": ["properties", "id"], "metadata": {"inclusion": kind, "selected": False}}
        for kind in ("available", "unsupported")
    ]
    schemas = [{"jobTitle": {}}, {"id": {"type": "integer"}}]
    streams: list[Config] = [{"stream": "postings"}, {"key_properties": ["x"]}, {}]
    streams += [{"schema": {"properties": it}} for it in schemas]
    for stream in [*streams, *({"metadata": [selected, it]} for it in without_key)]:
        path.write_text(catalog(**stream))
        done = run(forked, "--config=ENV", f"--catalog={path}", config=config)

        output = parse(done.stdout)
        (schema,) = output.of("SCHEMA")
        assert (done.returncode, schema["stream"], schema["key_properties"]) == (0, "jobs", ["id"])
        assert len(output.rows("jobs")) == 25


def test_a_map_of_a_stream_that_the_catalog_leaves_out_stops_no_other(
    forked: Program, config: Config, tmp_path: Path
) -> None:
    path = tmp_path / "catalog.json"
    left_out: Config = {"breadcrumb": [], "metadata": {"selected": False}}
    details = json.loads(catalog(tap_stream_id="job_details", metadata=[left_out]))
    both = {"streams": json.loads(catalog())["streams"] + details["streams"]}
    path.write_text(json.dumps(both), "utf-8-sig")  # with a byte order mark, as on Windows
    config |= {"stream_maps": json.dumps({"job_details": {"title": "job_title"}})}

    done = run(forked, "--config=ENV", f"--catalog={path}", config=config)

    assert done.returncode == 0
    assert [it["stream"] for it in parse(done.stdout).of("SCHEMA")] == ["jobs"]


@pytest.mark.parametrize("variable", ["TAP_PUBLIC_JOBS_LOGLEVEL", "LOGLEVEL"])
def test_an_unknown_level_of_the_log_is_one_line(forked: Program, variable: str) -> None:
    with started(forked, "--version", config={}, **{variable: "trace"}) as tap:
        said = "Unknown level: 'TRACE': set LOGLEVEL to DEBUG, INFO, WARNING or ERROR."
        assert tap.stderr.read() == f"Nothing was loaded. {said}\n"
        assert tap.wait() == 1


def test_settings_in_a_file_or_a_pipe(sandbox: Sandbox, config: Config, tmp_path: Path) -> None:
    """Settings in place of the file are not shown."""
    text, file = json.dumps(config), tmp_path / "a.json"
    file.write_text(text)
    # A pipe holds 64 KiB.
    long = json.dumps(config | {"stream_map_config": {"long": "x" * 200_000}})
    for path, sent, status, said in (
        ("/dev/stdin", long, 0, "The key works"),
        ("/dev/stdin", text, 0, "The key works"),
        (file, "", 0, "The key works"),
        (text, "", 1, f". --config … {NO_FILE}"),
    ):
        arguments = [*INSTALLED, "--test", f"--config={path}"]
        done = subprocess.run(arguments, input=sent, capture_output=True, text=True, check=False)

        assert (done.returncode, len(complaints(done.stderr))) == (status, status)
        assert said in done.stderr
        assert sandbox.key not in done.stderr


def read_until(pipe: IO[str], text: str, times: int = 1) -> str:
    """Read whole lines up to the one that has the text, or up to its n-th."""
    lines: list[str] = []
    for line in pipe:
        lines.append(line)
        times -= text in line
        if not times:
            return "".join(lines)
    pytest.fail(f"{text} did not come; this did: {lines}")


SIGNALS = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)


@pytest.mark.parametrize(
    ("number", "status", "lost"),
    [(signal.SIGTERM, 143, 0), (signal.SIGINT, 130, 0), (signal.SIGKILL, -9, 50)],
    ids=["TERM", "INT", "KILL"],
)
def test_a_run_that_was_ended_is_resumed_with_what_is_missing(
    patient: Program, tmp_path: Path, number: int, status: int, lost: int
) -> None:
    """In the middle of the fan-out, where all wait a minute for the rate limit.

    TERM and INT keep every answer; KILL loses the records since the last checkpoint.
    """
    with demo(400, latency=0.01) as (api, config):
        slow = config | {"rate_limit_requests": 200}
        with started(patient, "--config=ENV", config=slow) as tap:
            text = read_until(tap.stdout, '"RECORD","stream":"job_details"', times=150)
            tap.send_signal(number)
            text, errors = text + tap.stdout.read(), tap.stderr.read()
            assert tap.wait() == status
    first = parse(text[: text.rfind("\n") + 1])  # what a target can read of it
    checkpoint = max(n for n, message in enumerate(first.messages) if message["type"] == "STATE")
    details = Output(first.messages[:checkpoint]).rows("job_details")
    kept = {f"/jobs/{row['publicId']}" for row in details.values()}
    assert 100 <= len(first.rows("job_details")) - lost <= len(kept) < 400
    assert [message["stream"] for message in first.of("ACTIVATE_VERSION")] == ["jobs"]
    if not lost:
        assert first.messages[-1]["type"] == "STATE"
        assert complaints(errors) == []
        assert "Stopped by a signal. The next run resumes where this one ended." in errors
        assert {path for path in paths(api.requests) if "?" not in path} == kept
    state = tmp_path / "state.json"
    state.write_text(json.dumps(first.state))
    api.requests.clear()

    with serving(api) as url:
        run(patient, "--config=ENV", f"--state={state}", config=config | {"base_url": url})

    published = {f"/jobs/{posting.job['publicId']}" for posting in api.organisation.published()}
    after = [path for path in paths(api.requests) if "?" not in path]
    assert sorted(after) == sorted(published - kept)


def test_ctrl_c_while_modules_load_ends_the_process_without_a_traceback(tmp_path: Path) -> None:
    """A shell reports status 130 for a process that SIGINT has ended."""
    module = tmp_path / "singer_sdk.py"
    module.write_text("print('loading', flush=True); import signal; signal.pause()")
    with started(INSTALLED, "--version", config={}, PYTHONPATH=str(tmp_path)) as tap:
        read_until(tap.stdout, "loading")
        tap.send_signal(signal.SIGINT)
        assert (tap.stderr.read(), tap.wait()) == ("", -signal.SIGINT)


@SIGNALS
def test_a_signal_ends_a_tap_whose_server_does_not_answer(
    patient: Program, number: int, status: int
) -> None:
    has_asked = threading.Event()
    with demo(30) as (sandbox, config):
        sandbox.fail_next("stall")
        sandbox.at_request(1, has_asked.set)
        with started(patient, "--config=ENV", config=config) as tap:
            assert has_asked.wait()
            tap.send_signal(number)
            assert "Stopped by a signal." in tap.stderr.read()
            assert tap.wait() == status


@contextmanager
def long_lines() -> Iterator[Config]:
    """Settings for an API whose one job has a title of which a pipe takes a quarter."""
    with demo(1) as (sandbox, config):
        sandbox.edit(sandbox.organisation.published()[0].job["publicId"], jobTitle="x" * 300_000)
        yield config


@SIGNALS
def test_a_signal_ends_a_tap_whose_target_does_not_read(
    forked: Program, number: int, status: int
) -> None:
    with long_lines() as settings, started(forked, "--config=ENV", config=settings) as tap:
        assert "xxx" in tap.stdout.read(50_000)
        assert GRACE < SECONDS_TO_ANSWER < SECONDS_TO_STOP < 2  # the rest is for the state
        tap.send_signal(number)
        assert tap.wait() == status


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--config=ENV", "The target stopped reading (No space left on device): its own error i"),
        ("--discover", "| [Errno 28] No space left on device"),
    ],
)
def test_a_disk_that_is_full_is_one_line_and_no_traceback(
    forked: Program, config: Config, argument: str, said: str
) -> None:
    with (
        open("/dev/full", "w") as full,  # noqa: PTH123
        forked.start([argument], environment(config), stdout=full) as tap,
    ):
        (line,) = complaints(tap.stderr.read())
        assert tap.wait() == 1

    assert said in line


NOTED = """
import sys
from tap_public_jobs.singer.process import WholeMessageWriter as Writer
def stop(writer, status, stop=Writer.stop):
    print("time is up", file=sys.stderr, flush=True)
    stop(writer, status)
Writer.stop = stop
"""


def test_a_signal_cuts_no_line_short_when_python_does_not_buffer() -> None:
    """As in many a container image. The tap has no time left in the middle of a line."""
    unhurried = [sys.executable, "-c", NOTED + PATIENT]
    with (
        long_lines() as settings,
        started(unhurried, "--config=ENV", config=settings, PYTHONUNBUFFERED="1") as tap,
    ):
        head = tap.stdout.read(50_000)
        tap.send_signal(signal.SIGTERM)
        read_until(tap.stderr, "time is up")
        rest = tap.stdout.read()
        assert tap.wait() == 143

    output = parse(head + rest)
    assert [len(record["jobTitle"]) for record in output.records("jobs")] == [300_000]
    assert len(output.of("STATE")[-1]["value"]["bookmarks"]["jobs"]["sync"]["jobs"]) == 1


@pytest.mark.parametrize(
    ("argument", "said"), [("--config=ENV", ["The target stopped reading"]), ("--discover", [])]
)
def test_a_reader_that_goes_is_no_traceback(config: Config, argument: str, said: list[str]) -> None:
    """As in `python -m tap_public_jobs --discover | head -1`, which may or may not read all."""
    with started(MODULE, argument, config=config) as tap:
        tap.stdout.readline()
        tap.stdout.close()
        lines = complaints(tap.stderr.read())
        assert tap.wait() == 1 or not said

    assert all(it in line for it, line in zip(said, lines, strict=True))


def test_an_error_does_not_wait_for_a_request_in_flight(forked: Program) -> None:
    """A server that stalls would hold the process for as long as its read timeout."""
    with demo(30) as (sandbox, config):
        config |= {"request_timeout_seconds": 3600}
        sandbox.fail_next("stall", None, sandbox.organisation.published()[1].job["publicId"])
        sandbox.at_request(10, lambda: sandbox.revoke(sandbox.key))
        done = run(forked, "--config=ENV", config=config)

    assert done.returncode == 1
    assert "The API refused the key (401)" in done.stderr
