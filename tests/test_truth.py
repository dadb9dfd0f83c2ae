"""Every number that the pages promise is that of the code.

`PROMISED` says where the code has a number that readers rely on, whichever page names it.
"""

import math
import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from e2e.pipeline import REPOSITORY
from public_jobs_pipeline import alerts, digest, meltano, schedule
from public_jobs_pipeline.load import OLD
from public_jobs_receiver import app, payload
from public_jobs_sandbox.weeks import NIGHTS
from support.pages import EVERYWHERE, README

from tap_public_jobs import notification_log
from tap_public_jobs.limit import body, transport, verdict
from tap_public_jobs.singer import process
from tap_public_jobs.sync import listing, notifications, pages, plan, run, source, state
from tap_public_jobs.tap import TapPublicJobs

TEXTS = {
    path.relative_to(REPOSITORY).as_posix(): path.read_text("utf-8")
    for path in EVERYWHERE
    if path.name not in {"RELEASING.md", "CHANGELOG.md"}
}
BENCHMARKS = TEXTS["dev/benchmarks/README.md"]
SIZING = TEXTS["docs/set-up/sizing.md"]
WORDS = {"one": 1, "two": 2, "three": 3, "five": 5, "seven": 7, "eight": 8, "ten": 10, "twelve": 12}

SETTINGS: dict[str, Any] = TapPublicJobs.config_jsonschema["properties"]
REQUIRED = TapPublicJobs.config_jsonschema["required"]
LIMIT: int = SETTINGS["rate_limit_requests"]["default"]
PAGE: int = SETTINGS["page_size"]["default"]
DAYS: int = SETTINGS["detail_max_age_days"]["default"]
JOBS = 3_000


TEMPLATE = "pipeline/template/*schedule*"
MANY = "pipeline/airflow/dags/public_jobs.py"
PYTHONS = re.findall(r":: 3\.(\d+)\"", (REPOSITORY / "pyproject.toml").read_text("utf-8"))


def requests(jobs: int, details: int | None = None) -> int:
    """Of a run: the pages, one more if the last one is full, and the details."""
    return jobs // PAGE + 1 + (jobs if details is None else details)


def minutes(number: int) -> int:
    """How long these requests take."""
    return math.ceil(number / LIMIT)


def found(pattern: str, path: str) -> str:
    """Return what a file of the repository says."""
    (text,) = (it for it in REPOSITORY.glob(path) if it.is_file())
    return str(re.findall(pattern, text.read_text("utf-8"))[0])


def measured(section: str, row: str, column: int) -> str:
    """Return a cell of a table of the benchmarks.

    Args:
        section: Its heading.
        row: What the row has in it.
        column: Counted from 0.
    """
    table = BENCHMARKS.partition(f"\n### {section}\n")[2].partition("\n### ")[0]
    line = next(it for it in table.splitlines() if it.startswith("| ") and row in it)
    return plain(line.strip("| ").split(" | ")[column])


def plain(said: object) -> str:
    """Return a number in digits, without commas."""
    text = str(said).replace(",", "").removesuffix(".0")
    return str(WORDS.get(text, text))


AGAIN, GROWS = "What a second run costs", "How the cost grows"
LOADERS = [
    line.split(" | ") for line in re.findall(r"^\| [\w-]*target-.*", BENCHMARKS, re.MULTILINE)
]
HOURS_OF_OLD_TABLES = OLD // timedelta(hours=1)
HOURS_OF_OLD_SOURCES = yaml.safe_load(
    (REPOSITORY / "pipeline/transform/models/staging/sources.yml").read_text("utf-8")
)["sources"][0]["tables"][2]["config"]["freshness"]["error_after"]["count"]

PROMISED: dict[str, object] = {
    # Requests
    r"[Tt]he API allows (\d+) requests a minute": LIMIT,
    r"share its (\d+) requests per minute": LIMIT,
    r"one for (\d+) jobs of its list": PAGE,
    r"page of (\d+) jobs in the list": PAGE,
    r"summary\* of up to (\d+) jobs": PAGE,
    r"request is tried (\w+) times": verdict.MAX_TRIES,
    r"tries a request up to (\w+) times": verdict.MAX_TRIES,
    r"one of its (\w+) tries": verdict.MAX_TRIES,
    r"Try (?:1|…) of (\d+) failed": verdict.MAX_TRIES,
    r", after (\d+) tries": verdict.MAX_TRIES,
    r"After a 3xx or 4xx, (\w+) times are enough": verdict.FEW_TRIES,
    r"it tries (\w+) times within some seconds": verdict.FEW_TRIES,
    r"A first run tries (\w+) times": verdict.FEW_TRIES,
    r"it is tried (\w+) times in each run": verdict.FEW_TRIES,
    r"a run tries (\w+) times within": verdict.MAX_TRIES,
    r"`(\d+) times in a row`": transport.MAX_REJECTIONS,
    r"rejected one request (\w+) times": transport.MAX_REJECTIONS,
    r"[Aa]fter \[?(\w+) (?:rejections in a row|requests, it has failed)": transport.MAX_REJECTIONS,
    r"A response has at most (\d+) MiB": body.LARGEST >> 20,
    r"(\w+) times `request_timeout_seconds`": transport.DEADLINE,
    # The list
    r"A list ends after (\w+) pages without": pages.MAX_PAGES_WITHOUT_NEW_JOBS,
    r"reads it once more after (\w+) seconds": listing.PAUSE,
    r"fetches up to (\w+) listed jobs": listing.MOST_LISTED_ASKED,
    r"until (\d+) are not confirmed": listing.MOST_NOT_GONE,
    r"more than half of the jobs, and more than (\d+)": listing.DOUBTFUL_FROM,
    r"or all of (\w+) or more": listing.DOUBTFUL_IF_ALL,
    r"While (\w+) or more details fail": state.MANY_FAILING,
    # State
    r"run began (?:less|more) than (\d+) hours ago": plan.RESUME_WITHIN / state.HOUR,
    r"resumes\]\([^)]*\) only within (\d+) hours": plan.RESUME_WITHIN / state.HOUR,
    r"state after every (\d+) details": run.FEWEST_BETWEEN_CHECKPOINTS,
    r"state has (\d+) bits of (?:its|a) hash": 6 * len(source.hash_key("key")),
    r"end a run within (\w+) seconds": math.ceil(process.SECONDS_TO_STOP),
    # Webhooks
    r"For (\w+) minutes, each `./sync --if-news`": state.REPLICA_LAG / 60,
    r"in the next run, and once more after (\w+) minutes": state.REPLICA_LAG / 60,
    r"keeps the last ([\d,]+) notifications": notifications.KEPT,
    r"may wait (\d+) seconds for the database": notification_log.PATIENCE,
    r"those beyond ([\d,]+) in one payload": app.MOST_NAMED,
    r"body takes longer than (\d+) seconds": app.BODY_PATIENCE,
    r"is larger than (\d+) KiB": payload.LARGEST_BODY >> 10,
    r"token of (\d+) characters or more": 32,
    # Schedules
    r"(?:stops its run|stops a run|is stopped) after \[?(\d+) minutes": schedule.TIME_LIMIT / 60,
    r"the (\d+) minutes after which a schedule": schedule.TIME_LIMIT / 60,
    r"(?:longer than|not end within) (\d+) minutes": schedule.TIME_LIMIT / 60,
    r"(?:retry|waits|runs once more|[Tt]r(?:y|ies) again|fetches|passed)[^.|\n]*?(?:after|waits) "
    r"(twelve|\d+) minutes": alerts.RETRY_AFTER / 60,
    r"failed for (\w+) minutes": alerts.RETRY_AFTER / 60,
    r"Trying again in (\d+) minutes": alerts.RETRY_AFTER / 60,
    r"every (\w+) minutes with cron and systemd": found(r"\*/(\d+) ", f"{TEMPLATE}/*crontab*"),
    r"every (\w+) (?:minutes \||with the project's own DAG)": found(
        r"\*/(\d+) ", f"{TEMPLATE}/*airflow*"
    ),
    r"`./sync --if-news` every (\d+) minutes": found(r"\*/(\d+) ", MANY),
    r"and every (\d+) with the \[DAGs for many": found(r"\*/(\d+) ", MANY),
    r"at 04:(\d+),? (?:UTC, installs|because it starts)": found(
        r"cron: .(\d+) 4 ", "pipeline/template/*github*/workflows/*"
    ),
    r"(\d+) hours: look at the nights": HOURS_OF_OLD_TABLES,
    r"completely, and alerts after (\d+) hours": HOURS_OF_OLD_TABLES,
    r"(\d+) hours, which is when the template's schedules": HOURS_OF_OLD_TABLES,
    r"fails after (\d+) hours": HOURS_OF_OLD_SOURCES,
    r"within (\d+) seconds, or it is killed": meltano.TIME_TO_STOP,
    r"requests (\d+) MiB of": found(r"memory: (\d+)Mi", f"{TEMPLATE}/*kubernetes*"),
    r"Each kind has (\d+) lines": digest.AT_MOST,
    # What is needed
    r"Python 3\.(\d+) to 3\.\d+": PYTHONS[0],
    r"Python 3\.\d+ to 3\.(\d+)": PYTHONS[-1],
    r"must be ([\d.]+\d) or later": found(r"printf '([\d.]+)", "pipeline/template/setup.jinja"),
    r"disk beyond ([\d,]+) MB": found(r"or '(\d+)MB'", "pipeline/transform/profiles.yml"),
    r"MB and uses (\w+) threads": found(r"THREADS.*or '(\d+)'", "pipeline/transform/profiles.yml"),
    # What it costs
    r"plays (\w+) weeks": NIGHTS / 7,
    r"3,000 (?:jobs take|jobs:) (\d+) minutes": minutes(requests(JOBS)),
    r"\| ([\d,]+) requests, \d+ minutes": requests(JOBS),
    r"requests, (\d+) minutes": minutes(requests(JOBS)),
    r"\| (\d+) requests; old details": requests(JOBS, 0),
    r"the default of (\d+) days": DAYS,
    # What was measured
    r"and this tap (\d+) \(`all`\)": measured(AGAIN, "refresh: all", 2).split()[0],
    r"or (\d+) \(`changed`\)": measured(AGAIN, "refresh: changed", 2).split()[0],
    r"dlt (\d+) requests": measured(AGAIN, "dlt rest_api", 2).split()[0],
    r"requests, (\d+) of them rejected": measured(AGAIN, "dlt rest_api", 2).split()[1].strip("()"),
    r"some (\d+) % more time": round(
        100 * float(measured("Compared with the theoretical minimum", "leaky_bucket", 3)) - 100
    ),
    r"\| the tap, 3,000 jobs \| (\d+)": measured(GROWS, "| 3,000 |", 3),
    r"\| the tap, 10,000 jobs \| (\d+)": measured(GROWS, "| 10,000 |", 3),
    r"\| the tap, 30,000 jobs \| (\d+)": measured(GROWS, "| 30,000 |", 3),
    r"with long texts \| up to (\d+)": max(int(it[3]) for it in LOADERS),
    r"the tap took (\d+) seconds of CPU": round(
        float(measured("Compared with other tools", "3,000 | tap-public-jobs", 3))
    ),
    r"the loader \d+ to (\d+)\.": round(max(float(it[2]) for it in LOADERS)),
    r"second run of (\d+) unchanged jobs": re.findall(
        r"What a second run costs\n\n(\d+) jobs", BENCHMARKS
    )[0],
}
# Numbers of the README that other tests hold, or that nothing could.
ELSEWHERE = (
    r"first installs \d+ MB",  # test_readme.py
    r"then \d+ MB more",  # e2e/test_demo.py
    r"in about \d+ seconds",  # a test that asserts time would fail on a busy machine
    r"3,000 (?:unchanged )?jobs",
    r"some 550 a day",  # below, as in Sizing
    r"up to \[15,000 jobs",
    r"in under 50 minutes",
    r"50 lines of dlt",
    r"Apache-2\.0",
)


@pytest.mark.parametrize("pattern", PROMISED)
def test_a_number_on_a_page_is_that_of_the_code(pattern: str) -> None:
    said = {
        f"{page}: {match[0]}": plain(match[1])
        for page, text in TEXTS.items()
        for match in re.finditer(pattern, text)
    }

    assert said, "no page says it any more"
    assert said == dict.fromkeys(said, plain(PROMISED[pattern]))


def test_every_number_of_the_readme_has_a_source() -> None:
    spans = [it.span() for one in (*PROMISED, *ELSEWHERE) for it in re.finditer(one, README)]
    # Samples of code, names, and where links lead, promise nothing.
    prose = re.sub(
        r"```.*?```|`[^`]*`|\]\([^)]*\)", lambda it: "·" * len(it[0]), README, flags=re.DOTALL
    )
    numbers = [it for it in re.finditer(r"\d[\d,.]*", prose) if it[0] != "0"]

    assert len(numbers) > 20
    assert [it[0] for it in numbers if not any(a <= it.start() < b for a, b in spans)] == []


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading."""
    section = page.partition(f"\n## {heading}\n")[2]
    table = section.partition("\n|")[2].partition("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_the_settings_in_the_readme_are_those_of_the_tap() -> None:
    """With their defaults, in the order of the page of all settings."""
    shown = {row[0].strip("`"): row[1].strip("`") for row in rows(README, "Settings")}
    real = {
        name: "required" if name in REQUIRED else SETTINGS[name].get("default") or "none"
        for name in shown
    }

    assert len(shown) == 8
    assert shown == {name: plain(it) for name, it in real.items()}


def test_what_sizes_cost_is_what_the_limit_allows() -> None:
    """Each old detail is fetched after 5.25 days, or in a nightly run after 5.7."""
    table = rows(SIZING, "Time")

    assert len(table) > 3
    for published, every, unchanged, old, _ in table:
        jobs = int(plain(published))
        (number,) = re.findall(r"some (\d+)", plain(old))
        assert plain(every).split()[0] == str(requests(jobs))
        assert plain(unchanged).split()[0] == str(requests(jobs, 0))
        assert jobs / 5.8 < int(number) <= jobs / 5.25
        for cell, real in (
            (every, requests(jobs)),
            (unchanged, requests(jobs, 0)),
            (old, int(number)),
        ):
            for time, unit in re.findall(r"(\d+) (minutes|hours)", cell):
                assert abs(int(time) - real / {"minutes": LIMIT, "hours": 60 * LIMIT}[unit]) < 1


def test_every_promise_has_a_row_of_exceptions() -> None:
    promised = README.partition("\n## Promises\n")[2].partition("\n## ")[0].count("\n- ")
    exceptions = rows(TEXTS["docs/operate/sync.md"], "What the promises leave out")
    (count,) = re.findall(r"The README promises (\w+) things", TEXTS["docs/operate/sync.md"])

    assert len(exceptions) == promised == int(plain(count))
