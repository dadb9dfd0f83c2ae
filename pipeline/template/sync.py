"""Load the published jobs, and build the tables for analysts of what was loaded.

`sync` calls this with the project's Python; ./sync --help shows the ways to run it.
The log goes to stdout. An alert also goes to stderr, so cron mails it.
"""

import argparse
import fcntl
import getpass
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

from dotenv import dotenv_values

# Most failures heal by themselves within twelve minutes, so only a failed retry is an alert.
RETRY_AFTER = 12 * 60
# A run that fails every few minutes alerts once an hour.
ALERT_EVERY = 60 * 60
# Schedulers end a run after six hours, without an alert. So this comes before that.
TIME_LIMIT = 345 * 60
# After a signal, the target has this long to load what it has.
TIME_TO_STOP = 100

MELTANO = (".venv/bin/meltano", "--log-format=json")
TAP = "tap-public-jobs"
NEWS = Path(".meltano/extractors", TAP, "venv/bin/public-jobs-webhook")
# What the next run has to know: the tap's state, and since when runs of --if-news fail.
STATE, FAILING = Path(".meltano/state.json"), Path(".meltano/failing.json")
ENV = Path(".env")
WAREHOUSE, COPY = Path("output/warehouse.duckdb"), Path("output/warehouse-copy.duckdb")
# Exists from a load that found no DuckDB file until a load is complete.
IS_NEW = Path("output/warehouse.is-new")

# Of a TCP port.
LARGEST_PORT = 65_535

# Meltano passes .env to the tap; alerts and pings take these variables from it, too.
OF_THE_NETWORK = (
    "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"
)  # fmt: skip


class Interrupted(BaseException):
    """A signal, or the time limit, which is SIGALRM."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


class Line(NamedTuple):
    """A line of the log: from Meltano or the plugin `source`, or plain text of another program."""

    source: str
    text: str
    fields: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a line of JSON; any other line is text."""
        try:
            fields = json.loads(text)
            return cls(fields.get("name", "meltano"), str(fields["event"]).strip(), fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls("", re.sub(r"\x1b\[\d*m", "", text).strip(), {})

    def show(self) -> None:
        """Print the line; as JSON if Meltano is set to log JSON."""
        if os.environ.get("MELTANO_CLI_LOG_FORMAT") == "json" and self.fields:
            print(json.dumps(self.fields), flush=True)
        elif self.text != "METRIC":
            print(
                f"{time.strftime('%H:%M:%S')}  {self.source:<15}  {self.text}".rstrip(), flush=True
            )


def setting(name: str) -> str:
    """Return a variable of the environment or of .env; empty if it is in neither."""
    with suppress(OSError):  # `wrong` says so
        return os.environ.get(name) or env_file("replace").get(name) or ""
    return ""


def env_file(errors: str) -> dict[str, str | None]:
    """Return the variables of .env; `errors` decides about bytes that are not UTF-8."""
    text = ENV.read_text("utf-8-sig", errors) if ENV.exists() else ""
    return dotenv_values(stream=io.StringIO(text))


def run(*command: str | Path, **variables: str) -> tuple[int, list[Line]]:
    """Run a command to its end, and show what it writes.

    Returns:
        Its status, and its lines.
    """
    lines = []
    with subprocess.Popen(  # noqa: S603  # no user input
        command,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # a signal to the group of this process must not reach it
        close_fds=command[0] != MELTANO[0],  # Meltano keeps the lock if this process is killed
    ) as process:
        assert process.stdout  # noqa: S101  # it is a pipe
        try:
            for text in process.stdout:
                lines.append(Line.parse(text))
                lines[-1].show()
        except Interrupted:
            killer = threading.Timer(TIME_TO_STOP, os.killpg, [process.pid, signal.SIGKILL])
            killer.start()
            stop(process.pid)
            for text in process.stdout:
                Line.parse(text).show()
            killer.cancel()
            raise
    return process.returncode, lines


def stop(group: int) -> None:
    """End what Meltano runs; if the tap is running, only that, so that the target can finish."""
    import psutil  # noqa: PLC0415  # comes with Meltano, and only a signal needs it

    with suppress(psutil.Error, ProcessLookupError):  # it has just ended
        for process in psutil.Process(group).children(recursive=True):
            if any(word.endswith(f"/{TAP}") for word in process.cmdline()[:2]):
                process.terminate()
                return
        os.killpg(group, signal.SIGTERM)


class Load(NamedTuple):
    """What became of a load.

    Attributes:
        failure: Why it failed or is incomplete; empty if it is complete.
        jobs: How many jobs were loaded.
        written: Whether there is something to build; a load that wrote nothing changed nothing,
            and there may be no table yet.
    """

    failure: str
    jobs: int
    written: bool = True


class Result(NamedTuple):
    """What became of the load and the build.

    Attributes:
        loaded: What became of the load.
        failure: What failed, and why; empty if nothing did.
        says: The last two lines that the run prints.
    """

    loaded: Load
    failure: str
    says: str


def sync(options: argparse.Namespace, refresh: str = "", earlier: Load | None = None) -> Result:
    """Load, and build what was loaded.

    Args:
        options: The options of the command.
        refresh: The tap's detail_refresh; if empty, that of meltano.yml.
        earlier: The first load of this run; if it was complete, nothing is loaded again.
    """
    loaded = earlier if earlier and not earlier.failure else load_jobs(options, refresh)
    failure = loaded.failure
    if loaded.written:
        status, lines = invoke(options, "build")
        if status:
            failure = failure or f"The build failed: {reason_of_dbt(lines)}"
        elif options.warehouse == "duckdb" and (flaw := copy_warehouse()):
            failure = failure or f"{COPY} could not be written: {flaw}"
    # While no job is published, a complete load writes no row, so the tables only look old.
    if options.scheduled and not failure and loaded.jobs:
        status, lines = invoke(options, "freshness")
        if status:
            failure = f"The tables are old: {reason_of_dbt(lines)}"
    if failure:
        return Result(loaded, failure, f"{failure}\n{remedy(loaded, failure)}")
    says = f"{loaded.jobs:,} jobs loaded, tables built.\nAsk them: {options.ask}"
    return Result(loaded, "", says)


def load_jobs(options: argparse.Namespace, refresh: str) -> Load:
    """Run the tap and the target."""
    target = f"target-{options.warehouse}"
    if options.warehouse == "duckdb" and not WAREHOUSE.exists():
        WAREHOUSE.parent.mkdir(exist_ok=True)
        IS_NEW.touch()
    if IS_NEW.exists():
        # The state may know details that only an earlier file had: all are fetched again.
        refresh = "all"
    mode = {"TAP_PUBLIC_JOBS_DETAIL_REFRESH": refresh} if refresh else {}
    status, lines = run(*MELTANO, "run", "--no-install", TAP, target, **mode)
    if options.webhooks:
        keep_state(target)
    summary = next(
        (line for line in lines if line.source == TAP and "records" in line.fields), None
    )
    records = summary.fields["records"] if summary else {}
    jobs = records.get("jobs", 0)
    if not status:
        IS_NEW.unlink(missing_ok=True)
        return Load("", jobs)
    broken = target_broke(lines, target)
    failure = f"The load failed: {reason(lines, target if broken else TAP)}"
    return Load(failure, jobs, written=bool(records) and not broken)


def target_broke(lines: list[Line], target: str) -> bool:
    """Return whether the target failed, in a run that failed."""
    for line in lines:
        if "exit_codes" in line.fields:
            return "loaders" in line.fields["exit_codes"]
    # Meltano fails without such a line if the target ends while Meltano writes to it.
    return any(line.source == target for line in lines)


def remedy(loaded: Load, failure: str) -> str:
    """Return what the tables hold after a failure, and what to do."""
    not_built = "Nothing was built: the analytics tables are as the last build left them."
    held = "The tables have what was loaded." if loaded.written else not_built
    if "No action is needed" in failure:
        return held
    if "Cannot start plugin" in failure:  # it is not installed, or no longer
        return f"{held} Run ./setup, and then ./sync again."
    return f"{held} Correct it, and run ./sync again."


def invoke(options: argparse.Namespace, command: str) -> tuple[int, list[Line]]:
    """Run a command of dbt, as plugins.yml defines it."""
    return run(*MELTANO, "invoke", "--no-install", f"dbt-{options.warehouse}:{command}")


def reason(lines: list[Line], plugin: str) -> str:
    """Return the last line of the plugin that failed, or else of Meltano."""
    by_plugin = [line for line in lines if line.source == plugin and line.text]
    critical = [line for line in by_plugin if line.fields.get("level") == "critical"]
    others = [line for line in lines if line.text and "exit_codes" not in line.fields]
    errors = [line for line in others if line.fields.get("level") == "error"]
    found = critical or (by_plugin if plugin != TAP else []) or errors or others
    # A database may write several lines, and quote all rows of its statement.
    return " ".join(found[-1].text.split())[:1000] if found else "it wrote nothing"


def reason_of_dbt(lines: list[Line]) -> str:
    """Return the first error of dbt, which may begin on the line after the name of a model."""
    texts = [line.text for line in lines]
    for number, text in enumerate(texts):
        if re.search(r"Error in|ERROR STALE|Error: ", text):
            found = [text, *texts[number + 1 : number + 2]]
            return " ".join(re.sub(r"^\d\d:\d\d:\d\d\s+", "", text) for text in found)
    return next((text for text in reversed(texts) if text), "dbt wrote nothing")


def copy_warehouse() -> str:
    """Copy the database for readers, because one who has it open would lock it.

    Returns:
        What went wrong; empty if nothing did.
    """
    new = COPY.with_suffix(".new")
    try:
        shutil.copyfile(WAREHOUSE, new)
        new.replace(COPY)
    except OSError as error:
        new.unlink(missing_ok=True)
        return error.strerror or str(error)
    return ""


def keep_state(target: str) -> None:
    """Write the tap's state where the next run of --if-news reads it."""
    command = [*MELTANO, "state", "get", f"prod:{TAP}-to-{target}"]
    got = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # no user input
    if got.returncode == 0:
        new = STATE.with_suffix(".new")
        new.write_bytes(got.stdout)
        new.replace(STATE)


def has_news() -> bool:
    """Return whether there is work; on an error too, because a run then reports it."""
    if not NEWS.exists():  # the load then fails, and says that the plugin is not installed
        return True
    url = setting("TAP_PUBLIC_JOBS_CHANGES_URL")
    status, said = run(NEWS, "news", "--state", STATE, PUBLIC_JOBS_WEBHOOK_CHANGES_URL=url)
    # Without news it says nothing. A Python that cannot load it ends with 1, too.
    return status != 1 or bool(said) or FAILING.exists()


def scheduled(options: argparse.Namespace) -> Result:
    """Sync, and once more after a failure; alert if that fails too, and report a success."""
    refresh = "changed" if options.webhooks else ""
    result = sync(options, refresh)
    if result.failure:
        print(f"{result.failure}\nTrying again in {RETRY_AFTER // 60} minutes.", flush=True)
        wait()
        result = sync(options, refresh, result.loaded)
    if result.failure:
        alert(options, result.failure)
    else:
        FAILING.unlink(missing_ok=True)
        ping()
    return result


def wait() -> None:
    """Wait for the retry."""
    run("sleep", str(RETRY_AFTER))


def if_news(options: argparse.Namespace) -> Result | None:
    """Sync if there is work."""
    if not has_news():
        return None
    result = sync(options, "notified")
    if result.failure:
        alert_once_an_hour(options, result.failure)
    else:
        FAILING.unlink(missing_ok=True)
    return result


def alert_once_an_hour(options: argparse.Namespace, failure: str) -> None:
    """Alert if runs of --if-news have failed for as long as a retry waits."""
    now = time.time()
    try:
        # No later than now, although the clock may have been ahead.
        since, alerted = (min(now, float(at)) for at in json.loads(FAILING.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        since, alerted = now, 0.0
    if now - since >= RETRY_AFTER and now - alerted >= ALERT_EVERY:
        alert(options, failure)
        alerted = now
    with suppress(OSError):  # of another user, or on a full disk: the nightly run alerts
        FAILING.write_text(json.dumps([since, alerted]), "utf-8")


def alert(options: argparse.Namespace, failure: str) -> None:
    """Say what failed, where, and where the log is: on stderr, and to the address ALERT_URL."""
    name = Path.cwd().name
    text = f"{failure}\nHost: {socket.gethostname()}, project: {name}. Log: {options.log}"
    with suppress(OSError):  # a full disk keeps no log, and the alert has to go out
        print(text, file=sys.stderr, flush=True)
    if url := setting("ALERT_URL"):
        service, flaw = service_at(url)
        if flaw or not service.notify(text, title=f"{name} failed"):
            why = flaw or "The address in ALERT_URL was not reached, or refused it."
            print(f"No alert was sent. {why}", file=sys.stderr)


def service_at(url: str) -> tuple[Any, str]:
    """Return the service that gets alerts at an address, and what is wrong with the address."""
    try:
        from apprise import Apprise  # noqa: PLC0415  # only a project that sends messages has it
    except ModuleNotFoundError:
        command = "uvx copier update --trust --defaults --data alert=message"
        return None, f"This project is not set up to send alerts to ALERT_URL: run `{command}`."
    service = Apprise()
    if service.add(url):
        return service, ""
    # Without the address, which is a secret.
    return None, "ALERT_URL has none of these forms: https://appriseit.com/services/"


def ping() -> None:
    """Report a success to the address PING_URL, which alerts if no run reports."""
    if url := setting("PING_URL"):
        try:
            urllib.request.urlopen(url, timeout=30).close()  # noqa: S310  # the user's own address
        except Exception as error:  # noqa: BLE001  # without the address, which is a secret
            print(f"PING_URL was not reached: {type(error).__name__}", file=sys.stderr)


@contextmanager
def locked(*, wait: bool) -> Iterator[bool]:
    """Hold the lock of the project, whose runs must not overlap; false if another run has it."""
    with Path(".lock").open("a", encoding="utf-8") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003  # takes no keyword
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                yield False
                return
            print("Waiting for the run that is still going.", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield True


def wrong(options: argparse.Namespace) -> str:
    """Return what has to be corrected first; empty if nothing has to be."""
    try:
        env_file("strict")
    except UnicodeDecodeError:
        return f"{ENV.absolute()} is not in UTF-8: save it in UTF-8."
    except OSError as error:
        return f"{ENV.absolute()} cannot be read by {getpass.getuser()}: {error.strerror}."
    if options.source and not Path(options.source, "pyproject.toml").exists():
        return f"The tap's clone {options.source} is gone: clone it there again."
    names = re.findall(r"^(\w+)=", Path(".env.example").read_text("utf-8"), re.MULTILINE)
    if missing := [name for name in names if not (setting(name) or setting(f"{name}_FILE"))]:
        return f"Write {' and '.join(missing)} into {ENV.absolute()}."
    address = setting("TARGET_POSTGRES_SQLALCHEMY_URL")
    if options.warehouse == "postgres" and address and not is_address(address):
        return (
            "TARGET_POSTGRES_SQLALCHEMY_URL in .env must be "
            "postgresql+psycopg://user:password@host/database. In a password, @ is %40 and / is "
            "%2F."
        )
    return service_at(url)[1] if options.check and (url := setting("ALERT_URL")) else ""


def is_address(text: str) -> bool:
    """Return whether SQLAlchemy can use an address; its own error would show the password."""
    from sqlalchemy import make_url  # noqa: PLC0415  # comes with Meltano
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        return False
    is_port = url.port is None or url.port <= LARGEST_PORT
    return is_port and bool(url.database) and "@" not in f"{url.host}{url.database}"


def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """End the run; a further signal changes nothing.

    Raises:
        Interrupted: Always.
    """
    signal.alarm(0)
    for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(number)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the options; those that --help does not show are the project's, from the script sync."""
    parser = argparse.ArgumentParser("sync", description="Load the jobs, and build the tables.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--scheduled",
        action="store_true",
        help="as a schedule runs it: try a failure again after twelve minutes, then alert",
    )
    mode.add_argument(
        "--if-news",
        action="store_true",
        help="every few minutes: only if a webhook came, or the last run left work",
    )
    mode.add_argument(
        "--check", action="store_true", help="check .env, and run nothing, as setup does"
    )
    parser.add_argument("--webhooks", action="store_true", help=argparse.SUPPRESS)
    for name in ("warehouse", "log", "ask", "source"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> int:
    """Run the command, and return its status."""
    options = parse(sys.argv[1:])
    os.umask(0o077)  # while it runs, Meltano keeps the key in a file
    try:
        os.environ |= {name: value for name in OF_THE_NETWORK if (value := setting(name))}
        flaw = wrong(options)
        if not flaw:
            return 0 if options.check else start(options)
    except PermissionError as error:
        owner = f"sudo chown -R {getpass.getuser()} '{Path.cwd()}'"
        flaw = (
            f"{error.filename} cannot be used: {error.strerror}. If it is another user's: {owner}"
        )
    except Exception as error:  # noqa: BLE001  # whatever it is, no schedule may stay silent
        why = type(error).__name__  # its text may have a secret
        if isinstance(error, OSError):
            why = f"{error.strerror} ({error.filename})" if error.filename else str(error)
        flaw = f"The run broke off: {why}. If the disk is not full, run '{Path.cwd()}/setup'."
    return give_up(options, flaw)


def give_up(options: argparse.Namespace, flaw: str) -> int:
    """Say what has to be corrected first: as an alert of a schedule, or else on stderr."""
    if options.scheduled:
        alert(options, flaw)
    elif options.if_news:
        print(flaw, flush=True)
        alert_once_an_hour(options, flaw)
    else:
        print(flaw, file=sys.stderr)
    return 1


def start(options: argparse.Namespace) -> int:
    """Run as the options say, and return the status."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, interrupt)
    if options.scheduled or options.if_news:
        signal.alarm(TIME_LIMIT)
    try:
        with locked(wait=not options.if_news) as ours:
            if not ours:
                return 0  # the run that has the lock reads what is new, or the next one does
            if options.if_news:
                result = if_news(options)
            else:
                result = scheduled(options) if options.scheduled else sync(options)
    except Interrupted as signalled:
        if signalled.status == 128 + signal.SIGALRM:
            alert(options, f"The run did not end within {TIME_LIMIT // 60} minutes.")
            return 1
        print("Stopped by a signal. The next run resumes.", flush=True)
        return signalled.status
    if result:
        print(result.says, flush=True)
    return 1 if result and result.failure else 0


if __name__ == "__main__":
    sys.exit(main())
