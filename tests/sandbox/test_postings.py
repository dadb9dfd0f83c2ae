"""The sandbox's postings are as long and as untidy as those of public boards.

`docs/change/postings.md` counts both, and says what a change of all of them costs.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from e2e.pipeline import REPOSITORY
from harness import sync
from public_jobs_sandbox.postings import HOURS_IN_A_YEAR, Job, make_jobs, moved, reworded
from public_jobs_sandbox.state import Sandbox
from public_jobs_sandbox.vocabulary import PLACES

from tap_public_jobs.notification_log import NotificationLog

PAGE = (REPOSITORY / "docs/change/postings.md").read_text("utf-8")
# They take two seconds to make, so one worker makes them.
OF_MANY = pytest.mark.xdist_group("many postings")


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    return make_jobs(4000)


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading of the page."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return lines[2:]


def numbers(cell: str) -> list[float]:
    return [float(it.replace(",", "")) for it in re.findall(r"\d[\d,]*\.?\d*", cell)]


def quantiles(values: Iterable[int], *shares: float) -> list[float]:
    """Which values 10 %, half and 90 % stay below, or other shares."""
    ordered = sorted(values)
    return [ordered[int(share * (len(ordered) - 1))] for share in shares or (0.1, 0.5, 0.9)]


def percent(values: Iterable[object]) -> list[float]:
    found = [bool(it) for it in values]
    return [100 * sum(found) / len(found)]


@pytest.fixture(scope="module")
def measured(jobs: list[Job]) -> dict[str, list[float]]:
    """Each row of the page, as the sandbox has it."""
    overviews = [job["roleOverview"] for job in jobs]
    paid = [job for job in jobs if job["maxSalary"]]
    texts = [html.unescape(re.sub("<[^>]+>", "", it)) for it in overviews]
    spellings = {
        place.city: {it["location"] for it in jobs if place.city in it["location"]}
        for place in PLACES
    }
    assert max(map(len, spellings.values())) > 3

    def written(pattern: str) -> list[float]:
        """In how many overviews that are not empty the pattern occurs."""
        return percent(re.search(pattern, it) for it in overviews if it)

    return {
        "overview, characters of HTML": quantiles(map(len, overviews)),
        "overview, one in a hundred": quantiles(map(len, overviews), 0.99),
        "responsibilities, characters": quantiles(len(it["keyResponsibilities"]) for it in jobs),
        "title, characters": quantiles(len(it["jobTitle"]) for it in jobs),
        "location, characters": quantiles(len(it["location"]) for it in jobs),
        "lists": written("<li"),
        "entities": written(r"&[a-z#0-9]+;"),
        "no-break spaces": written("\xa0|&nbsp;"),
        "pasted styles": written('style="'),
        "curly quotes and dashes": written("[\u2013-\u201d]|&[rl][sd]quo;|&[mn]dash;"),
        "markup, of all characters": [100 - 100 * sum(map(len, texts)) / sum(map(len, overviews))],
        "emoji": written("[\U0001f300-\U0001faff]"),
        "empty": percent(not it for it in overviews),
        "not in English": written("Deine Rolle|Le poste|El puesto|A vaga|仕事の内容"),
        "outer spaces in the title": percent(
            it["jobTitle"] != it["jobTitle"].strip() for it in jobs
        ),
        "outer spaces in the location": percent(
            it["location"] != it["location"].strip() for it in jobs
        ),
        "places written in several ways": percent(len(it) > 1 for it in spellings.values()),
        "no pay": percent(it["maxSalary"] is None for it in jobs),
        "pay of zero": percent(it["maxSalary"] == 0 for it in jobs if it["maxSalary"] is not None),
        "pay by the hour": percent(it["salaryPeriod"] == "hour" for it in paid),
        "a range of at most a hundred": percent(
            it["maxSalary"] - it["minSalary"] <= 100 for it in paid if it["salaryPeriod"] == "year"
        ),
    }


@OF_MANY
@pytest.mark.parametrize("row", rows("What public boards hold"), ids=lambda row: row[0])
def test_postings_are_as_untidy_as_those_of_boards(
    row: list[str], measured: dict[str, list[float]]
) -> None:
    """A row with an asterisk says on the page why the sandbox differs from the boards."""
    name, boards, sandbox, *_ = row
    shown, found = numbers(sandbox), measured[name.removesuffix(" \\*")]

    assert found == pytest.approx(shown, rel=0.1, abs=0.5)
    if not name.endswith("\\*"):
        pairs = list(zip(numbers(boards), found, strict=True))
        assert all(board / 2.5 <= it <= 2.5 * board for board, it in pairs)


@OF_MANY
def test_pay_by_the_hour_is_an_hour_of_the_pay_by_the_year(jobs: list[Job]) -> None:
    """Otherwise a chart would show either as a fault of the sandbox."""
    paid = [it for it in jobs if it["maxSalary"] and it["currency"] == "EUR"]
    hourly = [it["minSalary"] for it in paid if it["salaryPeriod"] == "hour"]
    yearly = [it["minSalary"] for it in paid if it["salaryPeriod"] == "year"]

    middle = sum(yearly) / len(yearly) / HOURS_IN_A_YEAR
    assert sum(hourly) / len(hourly) == pytest.approx(middle, rel=0.2)


@OF_MANY
def test_the_same_seed_gives_the_same_postings(jobs: list[Job]) -> None:
    assert make_jobs(50) == jobs[:50]
    assert make_jobs(50, seed=2)[0] != jobs[0]


@pytest.mark.parametrize("refresh", ["all", "changed", "notified"])
@pytest.mark.parametrize(("place", "edit"), [(1, reworded), (2, moved)])
def test_a_change_of_all_jobs_costs_what_the_page_says(
    refresh: str,
    place: int,
    edit: Callable[[Job], Job],
    sandbox: Sandbox,
    config: dict[str, Any],
    changes_url: str,
) -> None:
    """Requests, and rows of `jobs` and `job_details`; 25 jobs on three pages of the list."""
    config |= {"detail_refresh": refresh}
    log = NotificationLog(changes_url)
    if refresh == "notified":
        config |= {"changes_url": changes_url}
        log.append({log.name: []})
    state = sync(config).state
    before = len(sandbox.requests)

    changed = [it.job["publicId"] for it in sandbox.organisation.published() if edit(it.job)]
    sandbox.edit_all(edit)
    if refresh == "notified":
        log.append({log.name: changed})
    output = sync(config, state=state)

    (said,) = [row[place] for row in rows("A change of all jobs") if row[0] == f"`{refresh}`"]
    counts = {"pages": 3, "jobs": 25, "0": 0}
    asked, loaded, details = (
        sum(counts[it] for it in part.split(" + ")) for part in said.split(" · ")
    )
    assert len(sandbox.requests) - before == asked
    assert (len(output.records("jobs")), len(output.records("job_details"))) == (loaded, details)
    if details:
        urls = Counter("careers." in it["jobUrl"] for it in output.records("job_details"))
        assert urls[edit is moved] == details
