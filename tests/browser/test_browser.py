"""A real browser shows what happened in the portal, from the final tables and without a network.

`uv run --with selenium,axe-playwright-python pytest tests/browser` runs it; it needs Chromium and
its driver.
"""

import csv
import datetime as dt
import json
import re
import shutil
import statistics
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
from e2e.pipeline import REPOSITORY
from e2e.scenario import job_row
from e2e.stores import TABLES, Row
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.weeks import copy_transform
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support.expected import DAY, Tables, make_table, monday
from support.portal import HISTORY_ALONE, WITHOUT_TESTS, DuckDB

from dev.benchmarks import years

# Those that read the same six weeks.
of_the_weeks = pytest.mark.xdist_group("weeks")

Lists = dict[str, list[list[str]]]
Driver = Any  # selenium is not installed for the checks
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
)
FIRST = dt.datetime(2026, 8, 3, 4)  # noqa: DTZ001  # as warehouses hold it: UTC without a zone
WEEK, WEEKS = dt.timedelta(weeks=1), 6
OPEN_AT_FIRST, CLOSE_IN_A_WEEK, MOST_OPENINGS = 90, 0.09, 11
LISTS = ("open", "without_pay", "reposts", "events")
PICTURES = ("levels", "flows", "department", "ages", "pay", "places")
DIMENSIONS = ("organisation", "department", "place", "seniority_level", "type")
EVIL = '<img src="https://evil.example/x"><script>document.title = "owned"</script>'
AXE = (
    "axe.run().then((it) => arguments[0](it.violations.map((one) => [one.id, one.nodes[0].html])))"
)
# What is wider than the window or its own box, and letters that end outside a picture.
CUT = """
    const wide = [...document.querySelectorAll("html, section, #tiles > div, li, table, td, th")]
        .filter((it) => it.checkVisibility() && it.scrollWidth > it.clientWidth + 1);
    const outside = [...document.querySelectorAll(".plot text")].filter((it) => {
        const [text, chart] = [it, it.closest("svg")].map((one) => one.getBoundingClientRect());
        return text.width && (text.left < chart.left - 1 || text.right > chart.right + 1);
    });
    return [...wide, ...outside].map((it) => it.outerHTML.slice(0, 200));
"""
# Everything that is behind a click.
OPEN = """
    const closed = [...document.querySelectorAll("main details:not([open])")];
    const opened = closed.map((it) => new Promise((done) => {
        it.addEventListener("toggle", done, { once: true });
        it.open = true;
    }));
    Promise.all(opened).then(() => {
        document.querySelectorAll("#lists button, #happened button").forEach((it) => {
            if (it.textContent.startsWith("Show all")) it.click();
        });
        arguments[0]();
    });
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Driver]:
    options = webdriver.ChromeOptions()
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


def history(
    weeks: int, organisation: str = "Halden Robotics", *, first: int = 0
) -> Iterator[Tables]:
    """Yield the jobs and publications after each sync: each week some close, open and are edited.

    Args:
        weeks: How many syncs.
        organisation: Whose jobs.
        first: The week of the first one.
    """
    random = Random(organisation)  # noqa: S311
    new = iter(make_jobs(OPEN_AT_FIRST + MOST_OPENINGS * weeks, organisation=organisation))
    jobs: dict[str, Row] = {}
    publications: list[Row] = []
    for week in range(weeks):
        listed_at = FIRST + (first + week) * WEEK
        for it in publications:
            if it["unpublished_at"] is None:
                closes = random.random() < CLOSE_IN_A_WEEK
                it["unpublished_at" if closes else "last_seen_at"] = listed_at
        if week:
            edited = random.choice([it for it in publications if it["unpublished_at"] is None])
            jobs[edited["id"]]["maxSalary"] = (jobs[edited["id"]]["maxSalary"] or 0) + 5000
        for _ in range(random.randint(0, MOST_OPENINGS) if week else OPEN_AT_FIRST):
            job = next(new)
            jobs[job["id"]] = job | {"salaryPeriod": "year"}
            times = (listed_at - WEEK if week else None, listed_at, listed_at, None)
            publications.append(publication(job["id"], job["publicId"], *times))
        yield {"jobs": list(jobs.values()), "job_publications": publications}


def publication(*values: Any) -> Row:
    return dict(zip(TABLES["job_publications"], values, strict=True))


def load(warehouse: DuckDB, tables: Tables, schema: str = "public_jobs") -> None:
    """Make the raw tables of an organisation anew, by the DuckDB that dbt has."""
    statements = ["begin", f"drop schema if exists {schema} cascade", f"create schema {schema}"]
    for table in TABLES:
        is_of_jobs = table != "job_publications"
        rows = [job_row(it, table) for it in tables["jobs"]] if is_of_jobs else tables[table]
        types = warehouse.target.column_types(table)
        make_table(statements.append, f"{schema}.{table}", types, rows)
    warehouse.run("; ".join([*statements, "commit"]))


def run_page(warehouse: DuckDB) -> None:
    """Run the dashboard as its users do, in an environment of its own."""
    script = str(REPOSITORY / "pipeline" / "dashboard" / "page.py")
    command = [*uv_command(), "run", "--quiet", "--script", script, str(warehouse.file)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> DuckDB:
    """Six weeks with a build after each, and with a seed of locations."""
    folder = tmp_path_factory.mktemp("weeks")
    warehouse = DuckDB(folder, project=copy_transform(folder / "transform"))
    for week, tables in enumerate(history(WEEKS), start=1):
        load(warehouse, tables)
        warehouse.build(*(HISTORY_ALONE if week < WEEKS else WITHOUT_TESTS))
    run_page(warehouse)
    return warehouse


def opened(browser: Driver, warehouse: DuckDB, **choice: str) -> None:
    page = warehouse.file.with_suffix(".html").as_uri()
    hash_ = f"#{urlencode(choice)}" if choice else ""
    browser.get("about:blank")
    browser.get(page + hash_)
    shows = "return document.body.dataset.shown"
    WebDriverWait(browser, 60).until(lambda it: it.execute_script(shows) == hash_)


def texts(browser: Driver, selector: str) -> list[str]:
    found = browser.find_elements("css selector", selector)
    return [it.get_attribute("textContent") or "" for it in found]


def tiles(browser: Driver) -> list[str]:
    """The five numbers."""
    return texts(browser, "#tiles .value")


def rows(browser: Driver, table: str) -> list[list[str]]:
    """The first table that the selector finds, cell by cell; none if it finds none."""
    script = "return [...document.querySelector(arguments[0])?.rows ?? []].map((row) => "
    script += "[...row.cells].map((cell) => cell.textContent))"
    found: list[list[str]] = browser.execute_script(script, table)
    return found[1:]


def complaints(browser: Driver) -> list[str]:
    """What the console says, and every request for something other than a page of a test."""
    events = [json.loads(it["message"])["message"] for it in browser.get_log("performance")]
    requests = [it for it in events if it["method"] == "Network.requestWillBeSent"]
    urls = [it["params"]["request"]["url"] for it in requests]
    assert urls
    return [it["message"] for it in browser.get_log("browser")] + [
        url for url in urls if not url.startswith(("file:", "data:", "about:"))
    ]


def day(time: Any) -> str:
    return f"{time:%-d %b %Y}"


def title(job: Row) -> str:
    return str(job["job_title"] or job["public_id"])


@dataclass
class Final:
    """The final tables, as far as the filters choose their rows.

    Attributes:
        warehouse: Has the tables.
        choice: The filters; daily_open_jobs has no currency and no title.
        to: The day that the page shows.
    """

    warehouse: DuckDB
    choice: dict[str, str]
    to: dt.date

    @cached_property
    def places(self) -> dict[str | None, str | None]:
        """What a location is called: a city, with its country, if that is known."""
        return {
            it["location"]: f"{it['city']}, {it['country']}" if it["city"] else it["location"]
            for it in self.warehouse.rows("analytics.job_spells")
        }

    def rows(self, table: str) -> list[Row]:
        """The rows that all filters choose, with their places."""
        search = self.choice.get("q", "").lower()
        rows = self.warehouse.rows(f"analytics.{table}")
        return [
            row
            for row in [
                it | {"place": self.places.get(it["location"])} if "location" in it else it
                for it in rows
            ]
            if all(
                (row[name] or "not given") == value
                for name, value in self.choice.items()
                if name in row
            )
            and (not search or search in title(row).lower())
        ]

    def open_on(self, day: dt.date) -> list[Row]:
        return [it for it in self.rows("job_spells") if it["from_day"] <= day < it["until_day"]]

    @cached_property
    def daily(self) -> list[Row]:
        """What happened on each day, from its own table where that has what the filters choose."""
        if self.choice.keys() <= {*DIMENSIONS, "from", "to"}:
            return self.rows("daily_open_jobs")
        begins, ends = ("opened", "reopened"), "closed"
        spells = self.rows("job_spells")
        opened = [{"day": it["from_day"], "opened": it["began_as"] in begins} for it in spells]
        closed = [{"day": it["until_day"], "closed": it["ended_as"] == ends} for it in spells]
        days = {it["day"] for it in self.warehouse.rows("analytics.daily_open_jobs")}
        is_open = [{"day": it, "open_jobs": len(self.open_on(it))} for it in days]
        none = {"opened": 0, "closed": 0, "open_jobs": 0}
        return [none | it for it in (*opened, *closed, *is_open)]

    def total(self, column: str, first: dt.date, last: dt.date) -> int:
        return sum(it[column] for it in self.daily if first <= it["day"] <= last)


def everything(browser: Driver) -> Lists:
    """All that is behind a click: the numbers of the pictures, and the lists."""
    browser.execute_async_script(OPEN)
    found = {name: rows(browser, f"#{name} table") for name in PICTURES}
    places = browser.find_elements("css selector", "#lists > details")
    assert len(places) == len(LISTS)
    for number, name in enumerate(LISTS, start=1):
        found[name] = rows(browser, f"#lists > details:nth-child({number}) table")
    return found


def number(cell: str) -> float:
    return float(cell.replace(",", "").replace("\u2212", "-").replace("\u00b1", ""))


def equals_dbt(browser: Driver, warehouse: DuckDB, **choice: str) -> None:
    """Every number of the page, counted from the final tables."""
    opened(browser, warehouse, **choice)
    nights = Final(warehouse, {k: choice[k] for k in choice if k == "organisation"}, dt.date.max)
    nights_of = {it["listed_at"].date() for it in nights.rows("listings")}
    to = dt.date.fromisoformat(choice.get("to", f"{max(nights_of)}"))
    final, shown = Final(warehouse, choice, to), everything(browser)
    is_open = final.open_on(to)
    (first,) = {min(it["day"] for it in warehouse.rows("analytics.daily_open_jobs"))}
    then = max(first, dt.date.fromisoformat(choice.get("from", f"{to - 4 * WEEK}")))

    assert final.total("open_jobs", to, to) == len(is_open)
    if "to" not in choice:
        assert len(is_open) == len(final.rows("open_jobs"))
    heading = texts(browser, "h1")[0]
    names = [it for name, it in choice.items() if name not in ("from", "to", "q")]
    assert all(worded(it) in heading and worded(it) in browser.title for it in names)
    change = len(is_open) - final.total("open_jobs", then, then)
    word = "more" if change > 0 else "fewer"
    assert f", {abs(change):,} {word} than" in heading if change else ", as many as" in heading

    counts = [final.total(it, then + DAY, to) for it in ("opened", "closed")]
    paid = [it for it in is_open if it["has_salary"]]
    assert tiles(browser)[:4] == [
        *(f"{it:,}" for it in (len(is_open), *counts)),
        f"{int(100 * len(paid) / len(is_open) + 0.5)}%" if is_open else "\u2013",
    ]
    for cell, roles, *_ in shown["levels"]:
        on = dt.datetime.strptime(cell, "%d %b %Y").date()  # noqa: DTZ007
        assert number(roles) == final.total("open_jobs", on, on), cell
    for cell, *flows, _ in [(*row[:3], "") for row in shown["flows"]]:
        week = dt.datetime.strptime(cell, "%d %b %Y").date()  # noqa: DTZ007
        until = min(week + 6 * DAY, to)
        expected = [final.total(it, week, until) for it in ("opened", "closed")]
        assert [*map(number, flows)] == expected, cell
    groups_equal(shown, final, is_open, then)
    growth_equals(browser, final, then)
    peaks_equal(browser, shown["flows"], final.to, then)
    if is_open:
        assert tiles(browser)[4] == old(is_open, to)
    pay_equals(browser, shown["pay"], paid)
    lists_equal(browser, shown, final, is_open, then)


CODES = {"full_time": "Full time", "part_time": "Part time"}
CODES |= {it: it.capitalize() for it in ("internship", "contract", "temporary")}
CODES |= {it: it.capitalize() for it in ("intern", "junior", "mid", "senior", "lead", "principal")}


def worded(code: str) -> str:
    """What people call a type or a level of the sandbox."""
    return CODES.get(code, code)


def old(is_open: list[Row], to: dt.date) -> str:
    """The share of the roles that have been open for four weeks, if that is known of all."""
    is_old = [to - it["opened_on"] >= 4 * WEEK for it in is_open]
    unknown = [it["was_open_before"] and to - it["opened_on"] < 4 * WEEK for it in is_open]
    return "\u2013" if any(unknown) else f"{int(100 * sum(is_old) / len(is_old) + 0.5)}%"


def groups_equal(shown: Lists, final: Final, is_open: list[Row], then: dt.date) -> None:
    now, before = (
        Counter(it["department"] or "not given" for it in its)
        for its in (is_open, final.open_on(then))
    )
    expected = {(it, now[it], before[it], now[it] - before[it]) for it in now | before}
    assert {(row[0], *map(number, row[1:])) for row in shown["department"]} == expected
    places = Counter((it["department"], it["place"]) for it in is_open)
    found = {(row[0], row[1]): int(row[2]) for row in shown["places"]}
    assert found == {(a or "not given", b or "not given"): it for (a, b), it in places.items()}
    first = [it for it in is_open if it["was_open_before"]]
    ages = {name: number(roles) for name, roles in shown["ages"]}
    if first:
        days = (final.to - max(it["opened_on"] for it in first)).days
        assert ages.pop(f"at least {days} day{'s' * (days != 1)}") == len(first)
    assert sum(ages.values()) == len(is_open) - len(first)


def growth_equals(browser: Driver, final: Final, then: dt.date) -> None:
    """The first lines name the department in which most opened, less what closed."""
    if "department" in final.choice:
        return
    names = {it["department"] for it in final.rows("job_spells") if it["department"]}
    moves = {}
    for name in names:
        of_it = Final(final.warehouse, final.choice | {"department": name}, final.to)
        moves[name] = [of_it.total(it, then + DAY, final.to) for it in ("opened", "closed")]
    lead = texts(browser, "#lead")[0]
    said = re.findall(r"; (.+) grew most \((\d+) opened, (\d+) closed\)", lead)
    most = max((opened - closed for opened, closed in moves.values()), default=0)
    assert bool(said) == (most > 0 and sum(map(any, moves.values())) > 1)
    for name, *counts in said:
        assert [*map(int, counts)] == moves[name]
        assert moves[name][0] - moves[name][1] == most


def peaks_equal(browser: Driver, flows: list[list[str]], to: dt.date, then: dt.date) -> None:
    """The first lines name a week in which twice as many as in any other opened or closed."""
    lead = texts(browser, "#lead")[0].replace("\xa0", " ")
    for place, kind in enumerate(("opened", "closed"), start=1):
        weeks = sorted(
            ((int(row[place]), dt.datetime.strptime(row[0], "%d %b %Y").date()) for row in flows),  # noqa: DTZ007
            reverse=True,
        )
        stands_out = False
        if len(weeks) > 3:
            (most, week), (next_most, _), *_ = weeks
            is_within = then < week < monday(to - DAY)
            stands_out = is_within and most >= 5 and most >= 2 * next_most
        assert (f" {kind} (" in lead) == stands_out


def pay_equals(browser: Driver, shown: list[list[str]], paid: list[Row]) -> None:
    """Of the largest currency and period, whose amounts are those of a year if that is known."""
    groups = defaultdict(list)
    for it in paid:
        kind = "annual" if it["annual_middle"] is not None else "salary"
        period = "a year" if kind == "annual" else it["salary_period"] or "(period not given)"
        amounts = [it[f"{kind}_{end}"] for end in ("low", "middle", "high")]
        groups[f"{it['currency']} {period}"].append((it["seniority_level"], *amounts))
    sizes = {name: len(its) for name, its in groups.items()}
    heading = texts(browser, "#pay h2")[0].partition(" pay in ")[2]
    assert sizes.get(heading) == max(sizes.values(), default=None)
    levels = defaultdict(list)
    for level, *amounts in groups.get(heading, ()):
        levels[worded(level) if level else "not given"].append(amounts)
    assert {row[0]: [number(it) for it in row[1:]] for row in shown} == {
        level: [
            len(its),
            min(it[0] for it in its),
            pytest.approx(statistics.median(it[1] for it in its), abs=0.06),
            max(it[2] for it in its),
        ]
        for level, its in levels.items()
    }


def lists_equal(
    browser: Driver, shown: Lists, final: Final, is_open: list[Row], then: dt.date
) -> None:
    assert Counter(row[0] for row in shown["open"]) == Counter(map(title, is_open))
    unpaid = [title(it) for it in is_open if not it["has_salary"]]
    assert sorted(row[0] for row in shown["without_pay"]) == sorted(unpaid)
    ever = {it["job_key"]: it for it in final.warehouse.rows("analytics.jobs_ever")}
    reposts = [title(it) for it in is_open if ever[it["job_key"]]["reposted_from"]]
    assert sorted(row[0] for row in shown["reposts"]) == sorted(reposts)

    # A filter of a currency takes the last one of the job.
    events = [
        it
        for it in final.rows("job_events")
        if it["happened_on"] <= final.to
        and (ever[it["job_key"]]["currency"] or "not given")
        == final.choice.get("currency", ever[it["job_key"]]["currency"] or "not given")
    ]
    since = [(it["event"], title(it)) for it in events if it["happened_on"] > then]
    assert Counter((row[1], row[2]) for row in shown["events"]) == Counter(since)
    first = min(it["day"] for it in final.warehouse.rows("analytics.daily_open_jobs"))
    start = max(monday(final.to - DAY), first)
    shown_kinds = ("opened", "reopened", "closed", "repriced")
    of_week = [
        (it["event"], title(it))
        for it in events
        if it["event"] in shown_kinds and it["happened_on"] >= start
    ]
    kinds, roles = (texts(browser, f"#happened li > :nth-child({place})") for place in (2, 3))
    assert Counter(zip(kinds, roles, strict=True)) == Counter(of_week)
    ages = texts(browser, "#happened .closed ~ .what")
    assert [it for it in ages if not it.startswith("was open for ")] == []


FILTERS = ("department", "place", "seniority_level", "type", "currency")
CHOICES: list[dict[str, str]] = [
    {},
    {"department": "Sales"},
    {"department": "Engineering", "seniority_level": "senior"},
    {"currency": ""},
    {"type": ""},
    {"place": ""},
    {"q": "ENGINEER"},
    {"from": "2026-08-12", "to": "2026-08-26"},
    dict.fromkeys(FILTERS, "") | {"from": "2026-08-12", "to": "2026-08-26", "q": "e"},
]


@pytest.mark.parametrize("choice", CHOICES, ids=urlencode)
@of_the_weeks
def test_every_number_is_what_dbt_says(
    browser: Driver, weeks: DuckDB, choice: dict[str, str]
) -> None:
    """For all roles, for filters that combine, and for other days.

    What a choice leaves empty is that of a role which was open all the time.
    """
    spells = Final(weeks, {}, dt.date.max).rows("job_spells")
    role = next(it for it in spells if it["ended_as"] == "open" and it["was_open_before"])
    equals_dbt(browser, weeks, **{name: it or role[name] for name, it in choice.items()})

    assert complaints(browser) == []


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (800, "dark"), (390, "dark")])
@of_the_weeks
def test_all_can_read_it(browser: Driver, weeks: DuckDB, width: int, theme: str) -> None:
    readable(browser, weeks, width, theme)
    opened(browser, weeks)
    lists = "document.querySelector('#lists').getBoundingClientRect().height"
    height = f"return document.documentElement.scrollHeight - {lists}"
    assert browser.execute_script(height) <= 4500
    # A seed of locations has one city for three spellings, so all places are there.
    assert width < 640 or not [it for it in texts(browser, "#places text") if "others" in it]


def test_twenty_organisations_are_as_clear_as_one(browser: Driver, tmp_path: Path) -> None:
    """The last one joins a week later, which makes no jump."""
    warehouse = DuckDB(tmp_path)
    names = [f"organisation_{it:02}" for it in range(20)]
    for name in names:
        *_, tables = history(3, name, first=int(name == names[-1]))
        load(warehouse, tables, name)
    warehouse.build("--vars", json.dumps({"schemas": names}), *WITHOUT_TESTS)

    readable(browser, warehouse, 390, "dark")
    # A long name is cut, and the number after it is not.
    labels = [it for it in texts(browser, "#levels .strong") if it]
    assert "\u2026" in "".join(labels)
    numbers = everything(browser)["levels"][0][2:6]
    assert [it.split()[-1] for it in reversed(labels)] == numbers
    readable(browser, warehouse, 1440, "light")

    opened(browser, warehouse)
    assert "Stale: 20 of 20 lists" in texts(browser, "#about")[0]
    shown = everything(browser)
    joined = day(FIRST + WEEK)
    assert f"All 20 organisations are known since {joined}." in texts(browser, "#levels .note")[0]
    assert shown["levels"][-1][0] == joined
    assert len([it for it in texts(browser, "#levels .strong") if it]) == 4
    assert "17 others" in texts(browser, "#levels .strong")[0]
    for section in (*PICTURES, *LISTS):
        columns = [*zip(*shown[section], strict=True)]
        assert [it for it in columns if set(it) == {"\u2013"}] == []
    equals_dbt(browser, warehouse, organisation=names[0])


def focused(browser: Driver) -> str:
    """What has the focus says."""
    return str(browser.execute_script("return document.activeElement.textContent"))


def said(browser: Driver, text: str) -> None:
    """Wait until a screen reader is told something."""
    WebDriverWait(browser, 60).until(lambda it: text in texts(it, "#said")[0])


@of_the_weeks
def test_filters_are_in_the_address_and_work_by_keyboard(browser: Driver, weeks: DuckDB) -> None:
    """And nothing that replaces what has the focus drops it, or is silent."""
    resize(browser, 1280, "light")
    opened(browser, weeks)
    whole = texts(browser, "h1")[0]

    browser.switch_to.active_element.send_keys(Keys.TAB, "Sal", Keys.ENTER)
    said(browser, "Sales: ")
    assert browser.current_url.endswith("#department=Sales")
    assert browser.execute_script("return document.activeElement.name") == "department"
    shown = everything(browser)
    assert {row[1] for row in shown["open"]} == {"Sales"}

    place = shown["places"][0][1]
    browser.execute_script("document.querySelectorAll('#places td a')[0].focus()")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    said(browser, f"Sales \u00b7 {place}: ")
    assert focused(browser) == place
    browser.back()
    browser.back()
    said(browser, whole)

    browser.execute_script("document.querySelector('#lists details').open = true")
    WebDriverWait(browser, 60).until(lambda it: rows(it, "#lists table"))
    browser.execute_script("document.querySelector('#lists .actions button').focus()")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    said(browser, "rows are shown")
    assert focused(browser) == rows(browser, "#lists table")[50][0]


@of_the_weeks
def test_a_table_sorts(browser: Driver, weeks: DuckDB) -> None:
    """By the numbers of its cells, with the focus kept."""
    opened(browser, weeks)
    browser.execute_async_script(OPEN)
    for is_down in (True, False):
        button = browser.find_element("css selector", "#lists th:last-child button")
        button.send_keys(Keys.ENTER)
        said(browser, f"Sorted by Days open, {'descending' if is_down else 'ascending'}")
        assert focused(browser) == "Days open"
        shown = [int(row[-1].rstrip("+").replace(",", "")) for row in rows(browser, "#lists table")]
        assert shown == sorted(shown, reverse=is_down)
        assert len({*shown}) > 1


@of_the_weeks
def test_a_picture_is_saved_with_its_title_and_filter(browser: Driver, weeks: DuckDB) -> None:
    resize(browser, 1280, "light")
    opened(browser, weeks, department="Sales")
    script = """
        const [id, type, done] = arguments;
        HTMLAnchorElement.prototype.click = function click() {
            if (this.href.startsWith("data:")) done(this.download + this.href);
        };
        URL.createObjectURL = (it) => { it.text().then(done); return "blob:"; };
        [...document.querySelectorAll(`#${id} button`)]
            .find((it) => it.textContent === type).click();
    """
    for name in PICTURES:
        drawn = browser.execute_async_script(script, name, "SVG")
        assert texts(browser, f"#{name} h2")[0] in drawn
        assert "Sales" in drawn
        assert "var(--" not in re.sub(r'style="[^"]*"', "", drawn)
        image = browser.execute_async_script(script, name, "PNG")
        assert image.startswith(f"{name}.pngdata:image/png;base64,")
    assert complaints(browser) == []


@of_the_weeks
def test_a_print_names_its_filter(browser: Driver, weeks: DuckDB) -> None:
    """In its title, and in light colours whatever the screen has."""
    resize(browser, 1280, "dark")
    opened(browser, weeks, department="Sales")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        (heading,) = browser.find_elements("css selector", "h1")
        assert heading.text.startswith("Sales: ")
        assert not browser.find_element("css selector", "form").is_displayed()
        background = "return getComputedStyle(document.body).backgroundColor"
        assert browser.execute_script(background) == "rgb(255, 255, 255)"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def resize(browser: Driver, width: int, theme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def readable(browser: Driver, warehouse: DuckDB, width: int, theme: str) -> None:
    """The page opens without an error or a request; nothing is cut, and axe finds nothing."""
    resize(browser, width, theme)
    run_page(warehouse)
    opened(browser, warehouse)
    assert browser.execute_script(CUT) == []
    assert browser.execute_script("return document.querySelector('#fold').open") == (width > 640)
    assert complaints(browser) == []
    axe = resources.files("axe_playwright_python") / "axe.min.js"
    browser.execute_script(axe.read_text("utf-8"))
    assert browser.execute_async_script(AXE) == []
    everything(browser)
    assert browser.execute_async_script(AXE) == []
    assert browser.execute_script(CUT) == []
    assert warehouse.file.with_suffix(".html").stat().st_size < 3_000_000


# Days before the first listing: opened after, first seen, last seen, unpublished.
CLOSED = [(60, 59, 51, 50), (30, 29, 24, 23), *[(16, 15, 13, 12)] * 6]
# What the API says of a role's pay, and how the page writes it.
PAY = [
    ("EUR", 40, 60, "year", "EUR 40\u201360 per year"),
    ("EUR", 50, 0, "Month", "from EUR 50 per month"),
    ("JPY", 0, 70, "project", "up to JPY 70 per project"),
    ("USD", 50, 60, None, "USD 50\u201360"),
    ("EUR", 0, 0, "year", "not given"),
    *[("EUR", 500, 700, "year", "EUR 500\u2013700 per year")] * 6,
    ("EUR", 5000, 900000, "year", "EUR 5,000\u2013900,000 per year"),
    ("EUR", 80000, 90000, "year", "EUR 80,000\u201390,000 per year"),
]
# Some spreadsheets begin a cell at a semicolon, some ignore spaces.
FORMULA = """=HYPERLINK("https://evil.example","x"); =1+1;\t@SUM(1)"""
INERT = """'=HYPERLINK("https://evil.example","x");' =1+1;'\t'@SUM(1)"""


def tables_of(state: str) -> Tables:
    """The raw tables of a small organisation in one of the states below."""
    count = {"no job": 0, "pay": len(PAY)}.get(state, 1)
    tables = {name: rows[:count] for name, rows in next(history(1)).items()}
    for job, pay in zip(tables["jobs"], PAY, strict=False):
        job |= dict(zip(("currency", "minSalary", "maxSalary", "salaryPeriod"), pay, strict=False))
        job["seniorityLevel"] = "lead" if job["minSalary"] == 80000 else "mid"
        job["type"] = "FULL_TIME" if job["minSalary"] == 80000 else "CDI"
        if state == "one job":
            job |= {"jobTitle": EVIL, "department": f"{EVIL} {'long ' * 40}", "jobUrl": EVIL}
            job["location"] = FORMULA
    for it in tables["job_publications"] if state == "all closed" else ():
        it["unpublished_at"] = FIRST + 2 * WEEK
    for place, days in enumerate(CLOSED if state == "closed" else ()):
        times = (FIRST - it * DAY for it in days)
        tables["job_publications"].append(publication(*[f"closed-{place}"] * 2, *times))
    return tables


# The width of the window, its theme, and what the page shows where.
STATES: dict[str, tuple[int, str, dict[str, str]]] = {
    "no job": (390, "light", {"h1": "No job has been seen yet."}),
    "one job": (
        390,
        "dark",
        {
            "h1": "1 role is open.",
            "#lead": "The list was first read on 3 Aug 2026",
            "#about": "Stale",
        }
        | {"#tiles div:nth-child(2) .value": "\u2013"},
    ),
    "pay": (1280, "light", {"#pay h2": "What roles pay in EUR a year"}),
    "closed": (
        1280,
        "light",
        {
            "#flows .note": "opened",
            "#lead": "6 opened (all in the week of 13\u00a0Jul)"
            " and 7 closed (6 in the week of 20\u00a0Jul)",
        },
    ),
    "all closed": (1280, "dark", {"h1": "No role is open, 1 fewer than on 3 Aug 2026"}),
    "two years": (1440, "dark", {"#about": "known since 1 Nov 2024"}),
}


@pytest.mark.parametrize("state", STATES)
def test_any_warehouse_makes_a_small_page_that_all_can_read(
    browser: Driver, tmp_path: Path, state: str
) -> None:
    width, theme, shows = STATES[state]
    warehouse = DuckDB(tmp_path)
    if state == "two years":
        warehouse.run(years.raw_tables(130_000))
    else:
        load(warehouse, tables_of(state))
    warehouse.build(*WITHOUT_TESTS)

    if state == "no job":
        run_page(warehouse)
        opened(browser, warehouse)
    else:
        readable(browser, warehouse, width, theme)

    for selector, text in shows.items():
        assert text in texts(browser, selector)[0]
    if state == "pay":
        shown = everything(browser)
        assert sorted(row[-2] for row in shown["open"]) == sorted(it[-1] for it in PAY)
        assert texts(browser, "[name=type] option") == ["All", "CDI", "Full time"]
        assert "2 roles in another currency" in texts(browser, "#pay .note")[0]
        # A range that is cut says so.
        assert "up to 900k" in texts(browser, "#pay text")
        assert browser.find_elements("css selector", "#pay .arrow")
        browser.execute_script(
            "const it = document.querySelector('#pay select'); it.value = 'JPY per project';"
            "it.dispatchEvent(new Event('change'))"
        )
        said(browser, "open")
        assert texts(browser, "#pay h2") == ["What roles pay in JPY per project"]
    if state == "one job":
        shown = everything(browser)
        assert shown["open"][0][0] == EVIL
        (row,) = csv_of(browser)
        assert row["place"] == INERT
        assert row["job_title"] == EVIL


def csv_of(browser: Driver) -> list[dict[str, str]]:
    """The file that the button of the first list makes."""
    script = """
        const [done] = arguments;
        HTMLAnchorElement.prototype.click = () => {};
        URL.createObjectURL = (it) => { it.text().then(done); return ""; };
        document.querySelector("#lists .actions button:last-child").click();
    """
    text: str = browser.execute_async_script(script)
    return [*csv.DictReader(text.splitlines(keepends=True))]
