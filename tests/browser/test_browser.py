"""A real browser shows what happened in the portal, from the final tables and without a network.

`uv run --with selenium,axe-playwright-python pytest tests/browser` runs it; it needs Chromium and
its driver.
"""

import csv
import datetime as dt
import itertools
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

import duckdb
import pytest
from e2e.pipeline import REPOSITORY
from e2e.scenario import job_row
from e2e.stores import TABLES, Row
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support.expected import DAY, KEY, Tables, make, make_table, monday
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
OPEN_AT_FIRST, CLOSE_IN_A_WEEK, MOST_OPENINGS = 60, 0.09, 11
LISTS = (
    *("monday_opened", "monday_closed", "monday_repriced", "organisations", "department"),
    *("location", "oldest", "without_pay", "reposts", "opened", "closed", "edits"),
)
LINES = "#curve .mark-line path"
FEW = "#pay > table"
PAY_FIELDS = ("min_salary", "max_salary", "currency")
AMOUNTS = ("Roles", "Lowest", "Median", "Highest")
EVIL = '<img src="https://evil.example/x"><script>document.title = "owned"</script>'
AXE = (
    "axe.run().then((it) => arguments[0](it.violations.map((one) => [one.id, one.nodes[0].html])))"
)
# What is wider than the window or its own box, and letters that end outside a chart.
CUT = """
    const wide = [...document.querySelectorAll("html, section, #tiles > div, table, td, th")]
        .filter((it) => it.checkVisibility() && it.scrollWidth > it.clientWidth + 1);
    const outside = [...document.querySelectorAll("svg text")].filter((it) => {
        const [text, chart] = [it, it.closest("svg")].map((one) => one.getBoundingClientRect());
        return text.width && (text.left < chart.left - 1 || text.right > chart.right + 1);
    });
    return [...wide, ...outside].map((it) => it.outerHTML.slice(0, 200));
"""
# The first cards as one picture, in the colours that the page has in each theme.
PICTURE = """
    document.head.insertAdjacentHTML("beforeend", "<style>p, details { display: none }</style>");
    const cards = [...document.querySelectorAll("#levels, #flows, #curve")];
    const { left, top } = cards[0].getBoundingClientRect();
    const { right, bottom } = cards.at(-1).getBoundingClientRect();
    const rules = [...document.styleSheets].flatMap((it) => [...it.cssRules]);
    const colours = rules.map((it) => it.cssText).filter((it) => it.includes("--card:"));
    const place = (it) => {
        const { x, y, width, height } = it.getBoundingClientRect();
        return `x="${x - left}" y="${y - top}" width="${width}" height="${height}"`;
    };
    const drawn = cards.map((card) => {
        const [heading, chart] = [card.querySelector("h2"), card.querySelector("svg")];
        return `<rect ${place(card)} rx="8" fill="var(--card)" stroke="var(--line)"/>
            <text ${place(heading)} dy="1em" fill="var(--text)">${heading.textContent}</text>
            <svg ${place(chart)}>${new XMLSerializer().serializeToString(chart)}</svg>`;
    });
    return `<svg xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif"
        viewBox="-1 -1 ${right - left + 2} ${bottom - top + 2}">
        <style>${colours.join("")}</style>${drawn.join("")}</svg>\n`;
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Driver]:
    options = webdriver.ChromeOptions()
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
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
            jobs[edited["id"]]["maxSalary"] += 5000
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
    """Six weeks with a build after each."""
    warehouse = DuckDB(tmp_path_factory.mktemp("weeks"))
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


def tiles(browser: Driver) -> dict[str, str]:
    """What the tiles say, by their names."""
    values = texts(browser, "#tiles .value")
    return dict(zip(texts(browser, "#tiles dt"), values, strict=True))


def rows(browser: Driver, table: str) -> list[list[str]]:
    """The first table that the selector finds, cell by cell; none if it finds none."""
    script = "return [...document.querySelector(arguments[0])?.rows ?? []].map((row) => "
    script += "[...row.cells].map((cell) => cell.textContent))"
    found: list[list[str]] = browser.execute_script(script, table)
    return found[1:]


def marks(browser: Driver, chart: str, role: str = "point") -> list[dict[str, str]]:
    """What each mark of a chart says to a screen reader, and in its tooltip."""
    found = browser.find_elements("css selector", f"#{chart} [aria-roledescription={role}]")
    labels = [it.get_attribute("aria-label") or "" for it in found]
    return [dict(part.split(": ", 1) for part in label.split("; ")) for label in labels]


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


def edited(counts: dict[str, int]) -> Tables:
    """The tables with a role in each department that was edited so often; the first last."""
    listing = {"organisation": "acme", "listed_at": "2026-11-29 04:00", "is_latest": True}
    tables: Tables = {"listings": [listing], "jobs_ever": [], "job_changes": []}
    for place, (department, count) in enumerate(counts.items()):
        job = KEY | {"job_key": department, "id": department}
        tables["jobs_ever"].append(job | {"public_id": department, "department": department})
        change = job | {"changed_by": dt.date(2026, 11, 28) - place * DAY}
        tables["job_changes"] += [
            change | {"field": f"additional_fields.a_{it:04}"} for it in range(count)
        ]
    return tables


@pytest.mark.parametrize(
    ("groups", "shows"),
    [
        (0, {"": ("10 of 3,012.", 1990), "Sales": ("10 of 12.", 10)}),
        (
            2500,
            {
                "": ("10 of 8,012.", 1000),
                "Engineering": ("10 of 3,000.", 1000),
                "Sales": ("1 of 12.", 1),
                "Group 2499": ("2, all earlier than the latest that this page has.", 0),
            },
        ),
    ],
)
def test_filters_come_before_limits(
    browser: Driver, tmp_path: Path, groups: int, shows: dict[str, tuple[str, int]]
) -> None:
    """However many events a large group has, and however many groups there are.

    The page gets the first ten of every group, and counts those that it does not get.
    """
    warehouse = DuckDB(tmp_path)
    many = {f"Group {it:04}": 2 for it in range(groups)}
    with duckdb.connect(str(warehouse.file)) as connection:
        make(connection.execute, edited({"Engineering": 3000, "Sales": 12} | many))
    run_page(warehouse)

    for department, (note, known) in shows.items():
        opened(browser, warehouse, **({"department": department} if department else {}))
        assert texts(browser, "#edits p")[-1] == note
        for button in browser.find_elements("css selector", "#edits button:not(:last-child)"):
            button.click()
        found = [row[1] for row in rows(browser, "#edits table")]
        assert found == [f"a_{it:04}" for it in range(known)]  # as the API names it


def whole_lists(browser: Driver) -> Lists:
    """All rows of each list, behind the buttons that show them."""
    browser.execute_script(
        "document.querySelectorAll('.actions button').forEach((it) => "
        "it.textContent.startsWith('Show all') && it.click())"
    )
    return {name: rows(browser, f"#{name} table") for name in LISTS}


@dataclass
class Final:
    """The final tables, as far as the filters choose their rows."""

    warehouse: DuckDB
    choice: dict[str, str]

    def rows(self, table: str, *names: str) -> list[Row]:
        """The rows that all filters choose, or those of these names; a table may lack a column."""
        choice = {it: self.choice[it] for it in self.choice if it in names or not names}
        return [
            row
            for row in self.warehouse.rows(f"analytics.{table}")
            if all((row.get(name, value) or "not given") == value for name, value in choice.items())
        ]

    @cached_property
    def today(self) -> dt.date:
        """The day of the latest listing of all organisations."""
        listings = self.warehouse.rows("analytics.listings")
        return max((it["listed_at"] for it in listings), default=FIRST).date()

    @cached_property
    def since(self) -> dt.date:
        """The first day on which all organisations are known."""
        rows = self.rows("daily_open_jobs", "organisation")
        latest_first = sorted(rows, key=lambda it: it["day"], reverse=True)
        firsts = {it["organisation"]: it["day"] for it in latest_first}
        return max(firsts.values(), default=self.today)

    @cached_property
    def days(self) -> list[Row]:
        """What each group had on each day, and how many days ago."""
        rows = self.rows("daily_open_jobs")
        return [it | {"age": (self.today - it["day"]).days} for it in rows]

    @cached_property
    def jobs(self) -> list[Row]:
        """The published ones, as the page sorts them, with the closing that a repost follows."""
        ever = {it["job_key"]: it for it in self.rows("jobs_ever", "organisation")}
        closings = {(it["organisation"], it["id"]): it["closed_by"] for it in ever.values()}
        found = []
        for job in self.rows("open_jobs"):
            earlier = ever[job["job_key"]]["reposted_from"]
            closed_by = closings.get((job["organisation"], earlier))
            found.append(job | {"title": title(job), "reposts": earlier, "earlier": closed_by})
        return sorted(found, key=lambda it: (it["opened_by"], it["title"], it["job_key"]))

    def estimates(self, table: str = "time_to_close") -> list[Row]:
        """Those of the chosen group, which one filter has at most."""
        groups = self.choice.items() - {("organisation", self.choice.get("organisation"))}
        group = groups or {("overall", "all")}
        return [it for it in self.rows(table) if {(it["dimension"], it["value"])} == group]


def title(job: Row) -> str:
    return str(job["job_title"] or job["public_id"])


def equals_dbt(browser: Driver, warehouse: DuckDB, **choice: str) -> None:
    """Every tile, chart and list, counted from the final tables alone."""
    opened(browser, warehouse, **choice)
    final, lists = Final(warehouse, choice), whole_lists(browser)
    tiles_equal(browser, final)
    charts_equal(browser, final)
    roles_equal(browser, lists, final)
    groups_equal(lists, final)
    events_equal(browser, lists, final)


def tiles_equal(browser: Driver, final: Final) -> None:
    def total(column: str, first: int, end: int) -> int:
        """Of how many days ago, until before how many."""
        return sum(it[column] for it in final.days if first <= it["age"] < end)

    count = len(final.jobs)
    counts = (count, total("opened", 0, 28), total("closed", 0, 28))
    unpaid = sum(not it["has_salary"] for it in final.jobs)
    medians = [median(it["median_days"], it["longest_days"]) for it in final.estimates()]
    assert tiles(browser) == {
        "open roles": f"{count:,}",
        "opened in four weeks": f"{counts[1]:,}",
        "closed in four weeks": f"{counts[2]:,}",
        "of roles without pay": f"{unpaid / count:.0%}" if count else "\u2013",
        "likely reposts": f"{sum(bool(it['reposts']) for it in final.jobs):,}",
        "days until half have closed": medians[0] if len(medians) == 1 else "\u2013",
    }
    known = (final.today - final.since).days
    before = (total("open_jobs", 28, 29), total("opened", 28, 56), total("closed", 28, 56))
    notes = texts(browser, "#tiles dd:nth-child(3)")
    for note, now, then, days in zip(notes, counts, before, (28, 56, 56), strict=False):
        change = f"{now - then:+,}".replace("-", "\u2212") if now != then else "\u00b10"
        assert note.split(" ")[0] == (change if known >= days else "change")


def median(days: float | None, longest: float) -> str:
    if days is not None:
        return f"{round(days, 1):g}"
    return f"> {round(longest, 1):g}" if longest >= 1 else "\u2013"


def charts_equal(browser: Driver, final: Final) -> None:
    """The marks, and the tables with the numbers of the charts."""
    is_open: Counter[str] = Counter()
    flows: Counter[tuple[str, str]] = Counter()
    for it in final.days:
        is_open[day(it["day"])] += it["open_jobs"]
        for kind in ("opened", "closed"):
            flows[day(monday(it["day"])), kind] += it[kind]
    levels = {row[0]: number(row[1]) for row in rows(browser, "#levels table")}
    assert levels == {name: is_open[name] for name in levels}
    assert {it["Day"]: number(it["Open roles"]) for it in marks(browser, "levels")} == levels
    assert {day(final.since), day(final.today)} <= levels.keys() or final.today == final.since

    parts: dict[str, str] = {}
    for age in range((final.today - final.since).days, -1, -1):
        week = monday(final.today - age * DAY)
        is_whole = f"to {day(final.today)}" if week + WEEK > final.today + DAY else "whole"
        parts[day(week)] = f"from {day(final.since)}" if week < final.since else is_whole
    flows = Counter({it: count for it, count in flows.items() if it[0] in parts})
    if bars := marks(browser, "flows", "bar"):
        assert {it["Week of"]: it["Known"] for it in bars} == parts
        assert Counter({(it["Week of"], it["What"]): number(it["Roles"]) for it in bars}) == flows
    else:
        assert len(parts) < 2 or not flows.total()

    points = [
        (it["Organisation"], float(it["Days"]), it["Still open"]) for it in marks(browser, "curve")
    ]
    curve = final.estimates("time_to_close_curve")
    steps = {(it["organisation"], it["days"]): f"{it['still_open']:.0%}" for it in curve}
    for name, days, share in points:
        assert share == (steps[name, days] if days else "100%")
    longest = {name: max(it[1] for it in points if it[0] == name) for name, *_ in points}
    largest = sorted(final.estimates(), key=lambda it: -it["at_risk"])[:4]
    assert longest == {it["organisation"]: it["longest_days"] for it in largest if points}
    if {"department", "seniority_level"} <= final.choice.keys():
        assert "one filter at a time" in texts(browser, "#curve p")[0]

    shown = [[it[name] for name in ("Unit", "Seniority", *AMOUNTS)] for it in marks(browser, "pay")]
    shown += [row[:3] + row[-3:] for row in rows(browser, FEW)]
    pay: defaultdict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for job in final.jobs:
        if job["has_salary"]:
            ends = [job[f"annual_{it}"] or job[f"salary_{it}"] for it in ("low", "middle", "high")]
            pay[unit_of_pay(job), job["seniority_level"] or "not given"].append(ends)
    expected = set()
    for group, jobs in pay.items():
        lows, middles, highs = zip(*jobs, strict=True)
        amounts = (min(lows), statistics.median(middles), max(highs))
        expected.add((*group, len(jobs), *(int(it + 0.5) for it in amounts)))
    assert {(unit, level, *map(number, it)) for unit, level, *it in shown} == expected


def unit_of_pay(job: Row) -> str:
    """Of a year where the API says what a salary is paid for."""
    if job["annual_middle"] is not None:
        return f"{job['currency']} per year"
    period = job["salary_period"]
    return (
        f"{job['currency']} per {period.lower()}"
        if period
        else f"{job['currency']}, period not given"
    )


def number(cell: str) -> int:
    """A number of a table, as the page rounds large ones."""
    return int(float(cell.replace(",", "")) + 0.5)


def roles_equal(browser: Driver, lists: Lists, final: Final) -> None:
    for name, roles in {
        "oldest": final.jobs,
        "without_pay": [it for it in final.jobs[::-1] if not it["has_salary"]],
        "reposts": [it for it in final.jobs[::-1] if it["reposts"]],
    }.items():
        assert [row[0] for row in lists[name]] == [it["title"] for it in roles], name
        links = browser.find_elements("css selector", f"#{name} a")
        urls = [it["job_url"] for it in roles if it["job_url"].startswith("http")]
        assert [it.get_attribute("href") for it in links] == urls
    # One that is open again has no closing.
    closings = [day(it["earlier"]) if it["earlier"] else "\u2013" for it in roles]
    assert [row[-1] for row in lists["reposts"]] == [day(it["opened_by"]) for it in roles]
    if {*closings} != {"\u2013"}:  # else the column is not there
        assert [row[-2] for row in lists["reposts"]] == closings


def groups_equal(lists: Lists, final: Final) -> None:
    for name in ("department", "location"):
        is_open, opened_, closed = Counter[str](), Counter[str](), Counter[str]()
        is_open.update(it[name] or "not given" for it in final.jobs)
        for it in final.days:
            if it["age"] < 28:
                opened_[it[name]] += it["opened"]
                closed[it[name]] += it["closed"]
        shown = {(row[0], *map(int, row[1:4])) for row in lists[name]}
        groups = (is_open + opened_ + closed).keys()
        assert shown == {(it, is_open[it], opened_[it], closed[it]) for it in groups}
    if lists["organisations"]:
        of_each = Counter(it["organisation"] for it in final.jobs)
        names = {it["organisation"] for it in final.rows("listings")}
        shown = {(row[0], int(row[1])) for row in lists["organisations"]}
        assert shown == {(it, of_each[it]) for it in names}


def events_equal(browser: Driver, lists: Lists, final: Final) -> None:
    """What the first listing of last Monday showed had happened before it."""
    listings = final.warehouse.rows("analytics.listings")
    last_monday = monday(final.today - DAY)
    latest_first = sorted((it["listed_at"], it["organisation"]) for it in listings)[::-1]
    first_of_monday = {name: time for time, name in latest_first if time.date() == last_monday}
    midnight = dt.datetime.combine(last_monday, dt.time())
    is_one = "organisation" in final.choice or len({it["organisation"] for it in listings}) < 2
    groups = ("organisation", "department", "location")[is_one:]

    ever = {it["job_key"]: it for it in final.rows("jobs_ever")}
    periods = final.warehouse.rows("analytics.publication_periods")
    events = [("opened", it["opened_by"], it["job_key"]) for it in periods if it["opened_after"]]
    events += [("closed", it["closed_by"], it["job_key"]) for it in periods if not it["is_open"]]
    for it in final.warehouse.rows("analytics.job_changes"):
        event = "repriced" if it["field"] in PAY_FIELDS else "edited"
        events.append((event, it["changed_by"], it["job_key"]))
    found = [(event, time, ever[key]) for event, time, key in events if key in ever]
    found.sort(key=lambda it: (title(it[2]), it[2]["job_key"]))
    found.sort(key=lambda it: it[1], reverse=True)
    for kind, kinds, section in (
        ("opened", {"opened"}, "opened"),
        ("closed", {"closed"}, "closed"),
        ("repriced", {"repriced"}, ""),
        ("", {"repriced", "edited"}, "edits"),
    ):
        of_kind = [(time, job) for event, time, job in found if event in kinds]
        width = 2 if kind in ("opened", "closed") else 1
        roles = [
            [title(job), ", ".join(job[it] or "not given" for it in groups)][:width]
            for _, job in of_kind
        ]
        if section:
            assert [row[:width] for row in lists[section]] == roles
        if kind:
            since = [
                time > first_of_monday.get(job["organisation"], midnight) for time, job in of_kind
            ]
            changed = {job["job_key"] for _, job in itertools.compress(of_kind, since)}
            (heading,) = texts(browser, f"#monday_{kind} h3")
            assert heading.split(" ")[0] == f"{len(changed):,}"
            shown = [row[:width] for row in lists[f"monday_{kind}"]]
            assert shown == [*itertools.compress(roles, since)]


@pytest.mark.parametrize("names", [(), ("department",), ("department", "seniority_level")])
@of_the_weeks
def test_every_number_is_what_dbt_says(
    browser: Driver, weeks: DuckDB, names: tuple[str, ...]
) -> None:
    """For all roles, and for filters that combine."""
    job, *_ = weeks.rows("analytics.open_jobs")
    equals_dbt(browser, weeks, **{name: job[name] for name in names})

    assert complaints(browser) == []
    if not names:
        # Syncs were a week apart, so that all of the last one was since last Monday.
        last_week = weeks.rows("analytics.last_week_changes")
        shown = whole_lists(browser)
        for kind in ("opened", "closed"):
            assert len(shown[f"monday_{kind}"]) == sum(it["event"] == kind for it in last_week) > 0
        readable(browser, weeks, 1280, "dark")


def test_twenty_organisations_are_as_clear_as_one(browser: Driver, tmp_path: Path) -> None:
    """The last one joins a week later, which makes no jump."""
    warehouse = DuckDB(tmp_path)
    names = [f"organisation_{it:02}" for it in range(20)]
    for name in names:
        *_, tables = history(3, name, first=int(name == names[-1]))
        load(warehouse, tables, name)
    warehouse.build("--vars", json.dumps({"schemas": names}), *WITHOUT_TESTS)

    readable(browser, warehouse, 390, "dark")
    readable(browser, warehouse, 1440, "light")

    equals_dbt(browser, warehouse)
    opened(browser, warehouse)
    assert "Stale: 20 of 20 lists." in texts(browser, "#freshness")[0]
    assert "The 4 largest of 20 organisations." in texts(browser, "#curve p")[0]
    joined = day(FIRST + WEEK)
    assert rows(browser, "#levels table")[0][0] == joined
    assert f"All 20 organisations are known since {joined}." in texts(browser, "#levels p")[0]
    drawn = [it.get_attribute("stroke") for it in browser.find_elements("css selector", LINES)]
    assert len(set(drawn)) == len(drawn) == 4
    for section in LISTS:
        columns = [*zip(*rows(browser, f"#{section} table"), strict=True)]
        assert [it for it in columns if set(it) == {"\u2013"}] == []
    for name in (names[0], names[-1]):
        equals_dbt(browser, warehouse, organisation=name)


@of_the_weeks
def test_filters_are_in_the_address_and_work_by_keyboard(browser: Driver, weeks: DuckDB) -> None:
    opened(browser, weeks)
    everything = tiles(browser)["open roles"]

    browser.switch_to.active_element.send_keys(Keys.TAB, "Sal", Keys.ENTER)
    WebDriverWait(browser, 60).until(lambda it: tiles(it)["open roles"] != everything)

    assert browser.current_url.endswith("#department=Sales")
    assert {row[1] for row in rows(browser, "#oldest table")} == {"Sales"}
    browser.find_element("css selector", "#location a").send_keys(Keys.ENTER)
    place = WebDriverWait(browser, 60).until(
        lambda it: it.execute_script("return document.querySelector('[name=location]').value")
    )
    assert {tuple(row[1:3]) for row in rows(browser, "#oldest table")} == {("Sales", place)}
    browser.back()
    browser.back()
    WebDriverWait(browser, 60).until(lambda it: tiles(it)["open roles"] == everything)


@of_the_weeks
def test_the_picture_in_the_readme_is_that_of_these_weeks(
    browser: Driver, weeks: DuckDB, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its numbers are; where letters are depends on the fonts of the computer."""
    resize(browser, 1080, "light")
    opened(browser, weeks)
    drawn: str = browser.execute_script(PICTURE)
    (tmp_path_factory.getbasetemp() / "dashboard.svg").write_text(drawn, "utf-8")

    numbers = re.compile(r'aria-label="([^"]+)"')
    shown = (REPOSITORY / "docs/pictures/dashboard.svg").read_text("utf-8")
    assert numbers.findall(shown) == numbers.findall(drawn)


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
    assert browser.title == "Public jobs"
    assert browser.execute_script("return document.querySelector('#fold').open") == (width > 640)
    licences = texts(browser, "footer pre")[0]
    for part in ("Vega", "(BSD-3-Clause)", "D3, TopoJSON", "(ISC)"):
        assert part in licences
    assert complaints(browser) == []
    axe = resources.files("axe_playwright_python") / "axe.min.js"
    browser.execute_script(axe.read_text("utf-8"))
    assert browser.execute_async_script(AXE) == []
    assert warehouse.file.with_suffix(".html").stat().st_size < 3_000_000


# Days before the first listing: opened after, first seen, last seen, unpublished.
CLOSED = [(60, 59, 51, 50), (16, 15, 13, 12), (16, 15, 13, 12)]
# What the API says of a role's pay, and how the page writes it.
PAY = [
    ("EUR", 40, 60, "year", "EUR 40\u201360 per year"),
    ("EUR", 50, 0, "Month", "from EUR 50 per month"),
    ("JPY", 0, 70, "project", "up to JPY 70 per project"),
    ("USD", 50, 60, None, "USD 50\u201360"),
    ("EUR", 0, 0, "year", "not given"),
    *[("EUR", 500, 700, "year", "EUR 500\u2013700 per year")] * 6,
    ("EUR", 5000, 90000, "year", "EUR 5,000\u201390,000 per year"),
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
        if state == "one job":
            job |= {"jobTitle": EVIL, "department": f"{EVIL} {'long ' * 40}", "jobUrl": EVIL}
            job["location"] = FORMULA
    for it in tables["job_publications"] if state == "all closed" else ():
        it["unpublished_at"] = FIRST + 2 * WEEK
    for place, days in enumerate(CLOSED if state == "closed" else ()):
        times = (FIRST - it * DAY for it in days)
        tables["job_publications"].append(publication(*[f"closed-{place}"] * 2, *times))
    return tables


CLOSED_SO_FAR = "3 of 3 roles seen opening have closed"
# The width of the window, its theme, and what the page shows where.
STATES: dict[str, tuple[int, str, dict[str, str]]] = {
    "no job": (
        390,
        "light",
        {"#freshness": "No job has been seen yet.", ".value": "0"}
        | {"#tiles dd:nth-child(3)": "change not known yet", "#without_pay p": "No role is open."},
    ),
    "one job": (390, "dark", {"#freshness": "Stale: the list", "#oldest th span": EVIL}),
    "pay": (1280, "light", {"#without_pay p": "The newest first."}),
    "closed": (1280, "light", {"#tiles div:last-child dd:nth-child(3)": CLOSED_SO_FAR}),
    "all closed": (
        1280,
        "dark",
        {".value": "0", "#monday_closed h3": "1 role closed", "#oldest p": "No role is open."},
    ),
    "two years": (1440, "dark", {"#levels tbody th": "3 Nov 2024"}),
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

    readable(browser, warehouse, width, theme)

    for selector, text in shows.items():
        assert text in texts(browser, selector)[0]
    if state == "pay":
        assert texts(browser, "#pay h3")[0] == "EUR per year: 10 roles"
        few = {(row[0], row[-1]) for row in rows(browser, FEW)}
        assert few == {("JPY per project", "70"), ("USD, period not given", "60")}
        oldest = whole_lists(browser)["oldest"]
        assert sorted(row[-2] for row in oldest) == sorted(it[-1] for it in PAY)
        assert "2 ranges with one end" in texts(browser, "#pay p")[0]
        # An outlier is written, and the axis ends before it.
        assert "600 \u2026 90,000" in texts(browser, "#pay svg text")
        assert "90,000" not in texts(browser, "#pay .role-axis text")
        assert {it["Highest"] for it in marks(browser, "pay")} == {"90,000"}
    if state == "one job":
        (row,) = csv_of(browser, "oldest")
        assert row["location"] == INERT
        assert row["job_title"] == EVIL
    if state == "all closed":
        assert [row[1] for row in rows(browser, "#levels table")] == ["1"] * 14 + ["0"]
        labels = texts(browser, "#levels .mark-text.role-axis-label text")
        assert [it for it in labels if it.isdecimal()] == ["0", "1"]
    if state != "two years":
        equals_dbt(browser, warehouse)


def csv_of(browser: Driver, section: str) -> list[dict[str, str]]:
    """The file that the button of a list makes."""
    script = """
        const [section, done] = arguments;
        HTMLAnchorElement.prototype.click = () => {};
        URL.createObjectURL = (it) => { it.text().then(done); return ""; };
        document.querySelector(`#${section} .actions button:last-child`).click();
    """
    text: str = browser.execute_async_script(script, section)
    return [*csv.DictReader(text.splitlines(keepends=True))]
