# ruff: noqa: S608  # nothing in these queries comes from outside
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
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import pytest
from browser.weeks import (
    FIRST,
    WEEK,
    Tables,
    build,
    history,
    load,
    play,
    run_page,
)
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support.expected import KEY, make
from support.expected import Tables as Made
from support.plugins import REPOSITORY
from support.warehouses import DuckDB

from benchmarks import years

# Those that read the same six weeks.
of_the_weeks = pytest.mark.xdist_group("weeks")

Lists = dict[str, list[list[str]]]
Driver = Any  # selenium is not installed for the checks
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
)
WEEKS = 6
DAY = dt.timedelta(days=1)
LISTS = (
    *("monday_opened", "monday_closed", "monday_repriced", "organisations", "department"),
    *("location", "oldest", "without_pay", "reposts", "opened", "closed", "edits"),
)
# What daily_open_jobs sums up, from how many days ago until before how many.
PARTS = (
    *(("opened", 0, 28), ("closed", 0, 28)),
    *(("open_jobs", 28, 29), ("opened", 28, 56), ("closed", 28, 56)),
)
EVENTS = """
    select job_key, case when field in ('min_salary', 'max_salary', 'currency') then 'repriced'
        else 'edited' end as event, changed_by as time, field from analytics.job_changes
    union all select job_key, 'opened', opened_by, '' from analytics.publication_periods
    where opened_after is not null
    union all select job_key, 'closed', closed_by, '' from analytics.publication_periods
    where not is_open
"""
# Of a year where the API says what a salary is paid for.
PAY_BY_SENIORITY = """
    select currency || case when annual_middle is not null then ' per year'
        else coalesce(' per ' || lower(salary_period), ', period not given') end as unit,
        coalesce(seniority_level, 'not given') as level, count(*) as roles,
        min(coalesce(annual_low, salary_low)) as lowest,
        median(coalesce(annual_middle, salary_middle)) as middle,
        max(coalesce(annual_high, salary_high)) as highest
    from analytics.open_jobs where has_salary and {chosen} group by unit, level
"""
LINES = "#curve .mark-line path"
FEW = "#pay > table"
AMOUNTS = ("Roles", "Lowest", "Median", "Highest")
COLUMNS = {"department": "department", "seniority_level": "seniorityLevel"}
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
    const create = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);
    const picture = create("svg");
    picture.setAttribute("viewBox", `-1 -1 ${right - left + 2} ${bottom - top + 2}`);
    picture.setAttribute("font-family", "system-ui, sans-serif");
    const rules = [...document.styleSheets].flatMap((it) => [...it.cssRules]);
    const colours = rules.filter((it) => it.cssText.includes("--card:"));
    picture.append(create("style"));
    picture.firstChild.textContent = colours.map((it) => it.cssText).join("");
    const put = (it, where, attributes) => {
        const { x, y, width, height } = where.getBoundingClientRect();
        Object.entries({ x: x - left, y: y - top, width, height, ...attributes })
            .forEach(([name, value]) => it.setAttribute(name, value));
        picture.append(it);
    };
    for (const card of cards) {
        const [heading, chart] = [card.querySelector("h2"), card.querySelector("svg")];
        put(create("rect"), card, { rx: 8, fill: "var(--card)", stroke: "var(--line)" });
        put(create("text"), heading, { dy: "1em", fill: "var(--text)" });
        picture.lastChild.textContent = heading.textContent;
        put(chart.cloneNode(true), chart);
    }
    return `${new XMLSerializer().serializeToString(picture)}\\n`;
"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The script that looks for what not all can read."""
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Driver]:
    options = webdriver.ChromeOptions()
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> tuple[DuckDB, Tables]:
    """Six weeks with a build after each, and what was loaded at their end."""
    warehouse = DuckDB(tmp_path_factory.mktemp("weeks"))
    tables = play(warehouse, WEEKS)
    run_page(warehouse.file)
    return warehouse, tables


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


def rows(browser: Driver, section: str) -> list[list[str]]:
    """The first table of a section, cell by cell; none if it has no table."""
    return cells(browser, f"#{section} table")


def cells(browser: Driver, table: str) -> list[list[str]]:
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


def edited(counts: dict[str, int]) -> Made:
    """The tables with a role in each department that was edited so often; the first last."""
    listing = {"organisation": "acme", "listed_at": "2026-11-29 04:00", "is_latest": True}
    tables: Made = {"listings": [listing], "jobs_ever": [], "job_changes": []}
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
    run_page(warehouse.file)

    for department, (note, known) in shows.items():
        opened(browser, warehouse, **({"department": department} if department else {}))
        assert texts(browser, "#edits p")[-1] == note
        for button in browser.find_elements("css selector", "#edits button:not(:last-child)"):
            button.click()
        found = [row[1] for row in rows(browser, "edits")]
        assert found == [f"a_{it:04}" for it in range(known)]  # as the API names it


def whole_lists(browser: Driver) -> Lists:
    """All rows of each list, behind the buttons that show them."""
    browser.execute_script(
        "document.querySelectorAll('.actions button').forEach((it) => "
        "it.textContent.startsWith('Show all') && it.click())"
    )
    return {name: rows(browser, name) for name in LISTS}


@dataclass
class Final:
    """The final tables, as far as the filters choose them."""

    warehouse: DuckDB
    choice: dict[str, str]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The answer to a query, in which `chosen` stands for the filters, `of` for that of one."""
        filters = {
            name: f"coalesce({name}, 'not given') = '{value}'"
            for name, value in self.choice.items()
        }
        chosen = " and ".join(filters.values()) or "true"
        of = filters.get("organisation", "true")
        found = self.warehouse.rows(f"({sql.format(chosen=chosen, of=of)}) as answer")
        return [tuple(it.values()) for it in found]

    @cached_property
    def today(self) -> dt.date:
        """The day of the latest listing of all organisations."""
        ((latest,),) = self.rows(
            "select cast(max(listed_at) as date) as day from analytics.listings"
        )
        return latest or FIRST.date()

    @cached_property
    def since(self) -> dt.date:
        """The first day on which all organisations are known."""
        firsts = self.rows(
            "select min(day) as day from analytics.daily_open_jobs where {of} group by organisation"
        )
        return max((first for (first,) in firsts), default=self.today)

    @cached_property
    def jobs(self) -> list[tuple[Any, ...]]:
        """The published ones, as the page sorts them."""
        return self.rows("""
            select coalesce(jobs.job_title, jobs.public_id) as title, jobs.job_url, jobs.has_salary,
                ever.reposted_from, earlier.closed_by, jobs.opened_by
            from (select * from analytics.open_jobs where {chosen}) as jobs
            join analytics.jobs_ever as ever using (job_key)
            left join analytics.jobs_ever as earlier
                on earlier.organisation = ever.organisation and earlier.id = ever.reposted_from
            order by jobs.opened_by, title, jobs.job_key
        """)

    def estimates(self, columns: str, table: str = "time_to_close") -> list[tuple[Any, ...]]:
        """Those of the chosen group, which one filter has at most."""
        others = [it for it in self.choice.items() if it[0] != "organisation"]
        dimension, value = others[0] if others else ("overall", "all")
        of = f"dimension = '{dimension}' and value = '{value}' and {{of}}"
        found = self.rows(f"select organisation, {columns} from analytics.{table} where {of}")
        return found if len(others) < 2 else []


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
    count, found = len(final.jobs), tiles(browser)
    unpaid = sum(not it[2] for it in final.jobs)
    sums = ", ".join(
        f"coalesce(sum({kind}) filter (where {first} <= age and age < {end}), 0) as of_{place}"
        for place, (kind, first, end) in enumerate(PARTS)
    )
    ((opened_, closed, *before),) = final.rows(f"""
        select {sums} from (
            select *, date '{final.today}' - day as age
            from analytics.daily_open_jobs where {{chosen}}
        ) as days
    """)
    medians = [median(*it[1:]) for it in final.estimates("median_days, longest_days")]
    assert found == {
        "open roles": f"{count:,}",
        "opened in four weeks": f"{opened_:,}",
        "closed in four weeks": f"{closed:,}",
        "of roles without pay": f"{unpaid / count:.0%}" if count else "\u2013",
        "likely reposts": f"{sum(bool(it[3]) for it in final.jobs):,}",
        "days until half have closed": medians[0] if len(medians) == 1 else "\u2013",
    }
    known = (final.today - final.since).days
    notes = texts(browser, "#tiles dd:nth-child(3)")
    for note, now, then, days in zip(
        notes, (count, opened_, closed), before, (28, 56, 56), strict=False
    ):
        change = f"{now - then:+,}".replace("-", "\u2212") if now != then else "\u00b10"
        assert note.split(" ")[0] == (change if known >= days else "change")


def median(days: float | None, longest: float) -> str:
    if days is not None:
        return f"{round(days, 1):g}"
    return f"> {round(longest, 1):g}" if longest >= 1 else "\u2013"


def charts_equal(browser: Driver, final: Final) -> None:
    """The marks, and the tables with the numbers of the charts."""
    each = "from analytics.daily_open_jobs where {chosen} group by 1"
    is_open = {day(it): n for it, n in final.rows(f"select day, sum(open_jobs) as n {each}")}
    levels = {row[0]: number(row[1]) for row in rows(browser, "levels")}
    assert levels == {name: is_open.get(name, 0) for name in levels}
    assert {it["Day"]: number(it["Open roles"]) for it in marks(browser, "levels")} == levels
    assert {day(final.since), day(final.today)} <= levels.keys() or final.today == final.since

    parts: dict[str, str] = {}
    for age in range((final.today - final.since).days, -1, -1):
        week = monday(final.today - age * DAY)
        is_whole = f"to {day(final.today)}" if week + WEEK > final.today + DAY else "whole"
        parts[day(week)] = f"from {day(final.since)}" if week < final.since else is_whole
    weeks = final.rows(
        "select cast(date_trunc('week', day) as date) as week, sum(opened) as opened, "
        f"sum(closed) as closed {each}"
    )
    flows = {
        (day(week), kind): count
        for week, *counts in weeks
        for kind, count in zip(("opened", "closed"), counts, strict=True)
        if day(week) in parts
    }
    if bars := marks(browser, "flows", "bar"):
        assert {it["Week of"]: it["Known"] for it in bars} == parts
        drawn = {(it["Week of"], it["What"]): number(it["Roles"]) for it in bars}
        assert Counter(drawn) == Counter(flows)
    else:
        assert len(parts) < 2 or not any(flows.values())

    points = [
        (it["Organisation"], float(it["Days"]), it["Still open"]) for it in marks(browser, "curve")
    ]
    curve = final.estimates("days, still_open", "time_to_close_curve")
    steps = {(name, days): f"{still_open:.0%}" for name, days, still_open in curve}
    for name, days, share in points:
        assert share == (steps[name, days] if days else "100%")
    longest = {name: max(it[1] for it in points if it[0] == name) for name, *_ in points}
    sizes = sorted(final.estimates("at_risk, longest_days"), key=lambda it: -it[1])
    assert longest == {name: days for name, _, days in sizes[:4] if points}
    if {"department", "seniority_level"} <= final.choice.keys():
        assert "one filter at a time" in texts(browser, "#curve p")[0]

    pay = [[it[name] for name in ("Unit", "Seniority", *AMOUNTS)] for it in marks(browser, "pay")]
    pay += [row[:3] + row[-3:] for row in cells(browser, FEW)]
    assert {(unit, level, *map(number, amounts)) for unit, level, *amounts in pay} == {
        (unit, level, *(int(it + 0.5) for it in amounts))
        for unit, level, *amounts in final.rows(PAY_BY_SENIORITY)
    }


def monday(date: dt.date) -> dt.date:
    return date - date.weekday() * DAY


def number(cell: str) -> int:
    """A number of a table, as the page rounds large ones."""
    return int(float(cell.replace(",", "")) + 0.5)


def roles_equal(browser: Driver, lists: Lists, final: Final) -> None:
    for name, roles in {
        "oldest": final.jobs,
        "without_pay": [it for it in final.jobs[::-1] if not it[2]],
        "reposts": [it for it in final.jobs[::-1] if it[3]],
    }.items():
        assert [row[0] for row in lists[name]] == [title for title, *_ in roles], name
        links = browser.find_elements("css selector", f"#{name} a")
        urls = [url for _, url, *_ in roles if url.startswith("http")]
        assert [it.get_attribute("href") for it in links] == urls
    # One that is open again has no closing.
    dates = [[day(closed) if closed else "\u2013", day(opened)] for *_, closed, opened in roles]
    no_closing = {closed for closed, _ in dates} == {"\u2013"}  # then the column is not there
    assert [row[-1 if no_closing else -2 :] for row in lists["reposts"]] == [
        it[no_closing:] for it in dates
    ]


def groups_equal(lists: Lists, final: Final) -> None:
    for name in ("department", "location"):
        groups = final.rows(f"""
            select value, sum(n) as n, sum(opened) as opened, sum(closed) as closed from (
                select coalesce({name}, 'not given') as value, 1 as n, 0 as opened, 0 as closed
                from analytics.open_jobs where {{chosen}}
                union all select {name}, 0, opened, closed from analytics.daily_open_jobs
                where {{chosen}} and day > date '{final.today - 28 * DAY}'
            ) as counted group by value having sum(n + opened + closed) > 0
        """)
        shown = {(row[0], *(int(cell) for cell in row[1:4])) for row in lists[name]}
        assert shown == {*groups}
    if lists["organisations"]:
        is_open = final.rows("""
            select organisation, (
                select count(*) from analytics.open_jobs
                where {chosen} and organisation = listings.organisation
            ) as n from analytics.listings where {of} group by organisation
        """)
        assert {(row[0], int(row[1])) for row in lists["organisations"]} == {*is_open}


def events_equal(browser: Driver, lists: Lists, final: Final) -> None:
    """What the first listing of last Monday showed had happened before it."""
    organisations = final.rows("select count(distinct organisation) as n from analytics.listings")
    is_one = "organisation" in final.choice or organisations[0][0] < 2
    last_monday = monday(final.today - DAY)
    events = final.rows(f"""
        select events.*, ever.where_, time > coalesce(
            (select min(listed_at) from analytics.listings
            where cast(listed_at as date) = date '{last_monday}'
                and organisation = ever.organisation), timestamp '{last_monday}'
        ) as is_since_monday, ever.title from ({EVENTS}) as events join (
            select *, coalesce(job_title, public_id) as title,
                concat_ws(', ', {"null" if is_one else "organisation"},
                    coalesce(department, 'not given'), coalesce(location, 'not given')) as where_
            from analytics.jobs_ever where {{chosen}}
        ) as ever using (job_key) order by time desc, title, job_key, field
    """)
    for kind, kinds, section in (
        ("opened", {"opened"}, "opened"),
        ("closed", {"closed"}, "closed"),
        ("repriced", {"repriced"}, ""),
        ("", {"repriced", "edited"}, "edits"),
    ):
        of_kind = [it for it in events if it[1] in kinds]
        width = 2 if kind in ("opened", "closed") else 1
        roles = [[title, where][:width] for *_, where, _, title in of_kind]
        if section:
            assert [row[:width] for row in lists[section]] == roles
        if kind:
            since = [is_since_monday for *_, is_since_monday, _ in of_kind]
            changed = {key for key, *_ in itertools.compress(of_kind, since)}
            (heading,) = texts(browser, f"#monday_{kind} h3")
            assert heading.split(" ")[0] == f"{len(changed):,}"
            shown = [row[:width] for row in lists[f"monday_{kind}"]]
            assert shown == [*itertools.compress(roles, since)]


@pytest.mark.parametrize("names", [(), ("department",), ("department", "seniority_level")])
@of_the_weeks
def test_every_number_is_what_dbt_says(
    browser: Driver, weeks: tuple[DuckDB, Tables], names: tuple[str, ...]
) -> None:
    """For all roles, and for filters that combine."""
    warehouse, tables = weeks
    oldest, *_ = tables["jobs"]
    equals_dbt(browser, warehouse, **{name: oldest[COLUMNS[name]] for name in names})

    assert complaints(browser) == []
    if not names:
        # Syncs were a week apart, so that all of the last one was since last Monday.
        last_week = warehouse.rows("analytics.last_week_changes")
        shown = whole_lists(browser)
        for kind in ("opened", "closed"):
            assert len(shown[f"monday_{kind}"]) == sum(it["event"] == kind for it in last_week) > 0


def test_twenty_organisations_are_as_clear_as_one(
    browser: Driver, axe: str, tmp_path: Path
) -> None:
    warehouse = DuckDB(tmp_path)
    names = [f"organisation_{it:02}" for it in range(20)]
    for place, name in enumerate(names):
        *_, tables = history(3, name, first=0 if place < len(names) - 1 else 1)
        load(warehouse, tables, name)
    build(warehouse, *names)

    readable(browser, axe, warehouse, 390, "dark")
    readable(browser, axe, warehouse, 1280, "light")

    equals_dbt(browser, warehouse)
    opened(browser, warehouse)
    assert "Stale: 20 of 20 lists." in texts(browser, "#freshness")[0]
    assert "The 4 largest of 20 organisations." in texts(browser, "#curve p")[0]
    drawn = [it.get_attribute("stroke") for it in browser.find_elements("css selector", LINES)]
    assert len(set(drawn)) == len(drawn) == 4
    for section in LISTS:
        columns = [*zip(*rows(browser, section), strict=True)]
        assert [it for it in columns if set(it) == {"\u2013"}] == []
    equals_dbt(browser, warehouse, organisation=names[-1])


@of_the_weeks
def test_filters_are_in_the_address_and_work_by_keyboard(
    browser: Driver, weeks: tuple[DuckDB, Tables]
) -> None:
    opened(browser, weeks[0])
    everything = tiles(browser)["open roles"]

    browser.switch_to.active_element.send_keys(Keys.TAB, "Sal", Keys.ENTER)
    WebDriverWait(browser, 60).until(lambda it: tiles(it)["open roles"] != everything)

    assert browser.current_url.endswith("#department=Sales")
    assert {row[1] for row in rows(browser, "oldest")} == {"Sales"}
    browser.find_element("css selector", "#location a").send_keys(Keys.ENTER)
    place = WebDriverWait(browser, 60).until(
        lambda it: it.execute_script("return document.querySelector('[name=location]').value")
    )
    assert {tuple(row[1:3]) for row in rows(browser, "oldest")} == {("Sales", place)}
    browser.back()
    browser.back()
    WebDriverWait(browser, 60).until(lambda it: tiles(it)["open roles"] == everything)


@of_the_weeks
def test_the_picture_in_the_readme_is_that_of_these_weeks(
    browser: Driver, weeks: tuple[DuckDB, Tables], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its numbers are; where letters are depends on the fonts of the computer."""
    resize(browser, 1080, "light")
    opened(browser, weeks[0])
    drawn: str = browser.execute_script(PICTURE)
    (tmp_path_factory.getbasetemp() / "dashboard.svg").write_text(drawn, "utf-8")

    numbers = re.compile(r'aria-label="([^"]+)"')
    shown = (REPOSITORY / "docs" / "dashboard.svg").read_text("utf-8")
    assert numbers.findall(shown) == numbers.findall(drawn)


def resize(browser: Driver, width: int, theme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def readable(browser: Driver, axe: str, warehouse: DuckDB, width: int, theme: str) -> None:
    """The page opens without an error or a request; nothing is cut, and axe finds nothing."""
    resize(browser, width, theme)
    run_page(warehouse.file)
    opened(browser, warehouse)
    assert browser.execute_script(CUT) == []
    assert browser.title == "Public jobs"
    assert browser.execute_script("return document.querySelector('#fold').open") == (width > 640)
    licences = texts(browser, "footer pre")[0]
    assert "Vega" in licences
    assert "(BSD-3-Clause)" in licences
    assert "D3, TopoJSON" in licences
    assert "(ISC)" in licences
    assert complaints(browser) == []
    browser.execute_script(axe)
    assert browser.execute_async_script(AXE) == []
    assert warehouse.file.with_suffix(".html").stat().st_size < 3_000_000


@of_the_weeks
def test_a_lost_state_changes_no_number_of_the_past(
    browser: Driver, axe: str, weeks: tuple[DuckDB, Tables], tmp_path: Path
) -> None:
    """The tap dates all published jobs anew, and dbt remembers when they were opened."""
    opened(browser, weeks[0])
    levels = rows(browser, "levels")
    warehouse = DuckDB(tmp_path)
    shutil.copy(weeks[0].file, warehouse.file)
    now = FIRST + WEEKS * WEEK
    published = [it for it in weeks[1]["job_publications"] if not it["unpublishedAt"]]
    anew = {"openedAfter": None, "firstSeenAt": now, "lastSeenAt": now}
    load(warehouse, weeks[1] | {"job_publications": [it | anew for it in published]})
    build(warehouse)

    readable(browser, axe, warehouse, 1280, "dark")

    assert rows(browser, "levels")[: len(levels)] == levels
    equals_dbt(browser, warehouse)


@of_the_weeks
def test_an_organisation_that_joins_later_makes_no_jump(
    browser: Driver, axe: str, weeks: tuple[DuckDB, Tables], tmp_path: Path
) -> None:
    warehouse = DuckDB(tmp_path)
    shutil.copy(weeks[0].file, warehouse.file)
    *_, lumen = history(2, "Lumen Books", first=WEEKS - 2)
    load(warehouse, lumen, "lumen")
    build(warehouse, "public_jobs", "lumen")

    readable(browser, axe, warehouse, 1440, "light")

    joined = day(FIRST + (WEEKS - 2) * WEEK)
    assert rows(browser, "levels")[0][0] == joined
    assert f"All 2 organisations are known since {joined}." in texts(browser, "#levels p")[0]
    equals_dbt(browser, warehouse)
    for organisation in ("public_jobs", "lumen"):
        equals_dbt(browser, warehouse, organisation=organisation)


# Days before the first listing: opened after, first seen, last seen, unpublished.
CLOSED = [(60, 59, 51, 50), (16, 15, 13, 12), (16, 15, 13, 12)]
TIMES = ("openedAfter", "firstSeenAt", "lastSeenAt", "unpublishedAt")
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
        it["unpublishedAt"] = FIRST + 2 * WEEK
    for place, days in enumerate(CLOSED if state == "closed" else ()):
        times = (FIRST - dt.timedelta(days=it) for it in days)
        name = {"id": f"closed-{place}", "publicId": f"closed-{place}"}
        tables["job_publications"].append(name | dict(zip(TIMES, times, strict=True)))
    return tables


@pytest.mark.parametrize(
    ("state", "width", "theme", "shows"),
    [
        (
            "no job",
            390,
            "light",
            {
                "#freshness": "No job has been seen yet.",
                ".value": "0",
                "#tiles dd:nth-child(3)": "change not known yet",
                "#without_pay p": "No role is open.",
            },
        ),
        ("one job", 390, "dark", {"#freshness": "Stale: the list", "#oldest th span": EVIL}),
        ("pay", 1280, "light", {"#without_pay p": "The newest first."}),
        (
            "closed",
            1280,
            "light",
            {"#tiles div:last-child dd:nth-child(3)": "3 of 3 roles seen opening have closed"},
        ),
        (
            "all closed",
            1280,
            "dark",
            {".value": "0", "#monday_closed h3": "1 role closed", "#oldest p": "No role is open."},
        ),
        ("two years", 1440, "dark", {"#levels tbody th": "3 Nov 2024"}),
    ],
)
def test_any_warehouse_makes_a_small_page_that_all_can_read(
    browser: Driver,
    axe: str,
    tmp_path: Path,
    state: str,
    width: int,
    theme: str,
    shows: dict[str, str],
) -> None:
    warehouse = DuckDB(tmp_path)
    if state == "two years":
        warehouse.run(years.raw_tables(130_000))
    else:
        load(warehouse, tables_of(state))
    build(warehouse)

    readable(browser, axe, warehouse, width, theme)

    for selector, text in shows.items():
        assert text in texts(browser, selector)[0]
    if state == "pay":
        assert texts(browser, "#pay h3")[0] == "EUR per year: 10 roles"
        few = {(row[0], row[-1]) for row in cells(browser, FEW)}
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
        assert [row[1] for row in rows(browser, "levels")] == ["1"] * 14 + ["0"]
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
