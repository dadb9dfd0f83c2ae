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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
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
    OPEN_AT_FIRST,
    WEEK,
    Row,
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
from support.final_tables import edited, make
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
LISTS = (
    *("monday_opened", "monday_closed", "monday_repriced", "organisations", "department"),
    *("location", "oldest", "without_pay", "reposts", "opened", "closed", "edits"),
)
PAY_FIELDS = ("min_salary", "max_salary", "currency")
LINES = "#curve .mark-line path"
FEW = "#pay > table"
AMOUNTS = ("Roles", "Lowest", "Median", "Highest")
COLUMNS = {"department": "department", "location": "location", "seniority_level": "seniorityLevel"}
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


def pay_by_seniority(roles: Iterable[Row]) -> set[tuple[Any, ...]]:
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for it in roles:
        groups[f"{it['currency']} per year", it["seniorityLevel"]].append(it)
    return {
        (
            *group,
            len(of),
            whole(min(it["minSalary"] for it in of)),
            whole(statistics.median((it["minSalary"] + it["maxSalary"]) / 2 for it in of)),
            whole(max(it["maxSalary"] for it in of)),
        )
        for group, of in groups.items()
    }


def whole(amount: float) -> int:
    """As the page rounds amounts in tables."""
    return int(amount + 0.5)


def day(time: Any) -> str:
    return f"{time:%-d %b %Y}"


def test_filters_come_before_limits(browser: Driver, tmp_path: Path) -> None:
    """However many events a large group has, and however many groups there are."""
    warehouse = DuckDB(tmp_path)
    many = {f"Group {it:04}": 2 for it in range(2500)}
    with duckdb.connect(str(warehouse.file)) as connection:
        make(connection.execute, edited({"Engineering": 3000, "Sales": 12} | many))
    run_page(warehouse.file)

    for department, note, known in (
        ("", "10 of 8,012.", 1000),
        ("Engineering", "10 of 3,000.", 1000),
        ("Sales", "1 of 12.", 1),
        ("Group 2499", "2, all earlier than the latest that this page has.", 0),
    ):
        opened(browser, warehouse, **({"department": department} if department else {}))
        assert texts(browser, "#edits p")[-1] == note
        for button in browser.find_elements("css selector", "#edits button:not(:last-child)"):
            button.click()
        assert len(rows(browser, "edits")) == known


@pytest.mark.parametrize("names", [(), ("department",), ("department", "seniority_level")])
@of_the_weeks
def test_every_number_is_what_happened_in_the_portal(
    browser: Driver, weeks: tuple[DuckDB, Tables], names: tuple[str, ...]
) -> None:
    """Counted role by role, for all roles and for filters that combine."""
    warehouse, tables = weeks
    by_id = {job["id"]: job for job in tables["jobs"]}
    oldest = by_id[tables["job_publications"][0]["id"]]
    choice = {name: oldest[COLUMNS[name]] for name in names}
    roles = [
        it | by_id[it["id"]]
        for it in tables["job_publications"]
        if all(by_id[it["id"]][COLUMNS[name]] == value for name, value in choice.items())
    ]
    is_open = [it for it in roles if not it["unpublishedAt"]]
    times = [FIRST + week * WEEK for week in range(WEEKS)]
    four_weeks_ago = times[-1] - 4 * WEEK

    opened(browser, warehouse, **choice)

    levels = {row[0]: int(row[1]) for row in rows(browser, "levels")}
    drawn = {it["Day"]: int(it["Open roles"]) for it in marks(browser, "levels")}
    assert levels == drawn
    for time in times:
        assert levels[day(time)] == sum(
            it["firstSeenAt"] <= time and not (it["unpublishedAt"] and it["unpublishedAt"] <= time)
            for it in roles
        )
    flows = Counter((day(it["firstSeenAt"]), "opened") for it in roles if it["openedAfter"])
    flows += Counter((day(it["unpublishedAt"]), "closed") for it in roles if it["unpublishedAt"])
    bars = marks(browser, "flows", "bar")
    assert Counter({(it["Week of"], it["What"]): int(it["Roles"]) for it in bars}) == flows
    assert {it["Week of"]: it["Known"] for it in bars} == {
        day(time): f"to {day(time)}" if time == times[-1] else "whole" for time in times
    }
    recent = [it for it in roles if it["openedAfter"] and it["firstSeenAt"] > four_weeks_ago]
    gone = [it for it in roles if it["unpublishedAt"] and it["unpublishedAt"] > four_weeks_ago]
    found = tiles(browser)
    assert found["open roles"] == str(len(is_open))
    assert found["opened in four weeks"] == str(len(recent))
    assert found["closed in four weeks"] == str(len(gone))
    change = texts(browser, "#tiles dd:nth-child(3)")[0].partition(" since four weeks ago")[0]
    change = change.replace("\u2212", "-").replace("\u00b1", "")
    assert int(change) == len(is_open) - levels[day(four_weeks_ago)]
    if len(names) < 2:
        value = choice[names[0]] if names else "all"
        of = f"where dimension = '{names[0] if names else 'overall'}' and value = '{value}'"
        (estimate,) = warehouse.rows(f"analytics.time_to_close {of}")
        steps = warehouse.rows(f"analytics.time_to_close_curve {of}")
        curve = {it["days"]: f"{it['still_open']:.0%}" for it in steps}
        points = {float(it["Days"]): it["Still open"] for it in marks(browser, "curve")}
        assert points == {0: "100%"} | {days: curve[days] for days in points if days}
        assert max(points) == max(curve)
        longest, median = f"> {estimate['longest_days']:g}", estimate["median_days"]
        assert found["days until half have closed"] == (f"{median:g}" if median else longest)
    else:
        assert found["days until half have closed"] == "\u2013"
        assert "one filter at a time" in texts(browser, "#curve p")[0]
    pay = [[it[name] for name in ("Unit", "Seniority", *AMOUNTS)] for it in marks(browser, "pay")]
    pay += cells(browser, FEW)
    assert {
        (unit, level, *(whole(float(it.replace(",", ""))) for it in amounts))
        for unit, level, *amounts in pay
    } == pay_by_seniority(is_open)
    expected = sorted(is_open, key=lambda it: (it["firstSeenAt"], it["jobTitle"], it["id"]))[:10]
    assert [row[0] for row in rows(browser, "oldest")] == [it["jobTitle"] for it in expected]
    links = browser.find_elements("css selector", "#oldest a")
    assert [it.get_attribute("href") for it in links] == [it["jobUrl"] for it in expected]
    assert complaints(browser) == []


def whole_lists(browser: Driver) -> Lists:
    """All rows of each list, behind the buttons that show them."""
    browser.execute_script(
        "document.querySelectorAll('.actions button').forEach((it) => "
        "it.textContent.startsWith('Show all') && it.click())"
    )
    return {name: rows(browser, name) for name in LISTS}


@dataclass
class Final:
    """The final tables of an organisation, or of all."""

    warehouse: DuckDB
    organisation: str

    def __getattr__(self, table: str) -> list[Row]:
        found = self.warehouse.rows(f"analytics.{table}")
        return [it for it in found if self.organisation in ("", it["organisation"])]

    @cached_property
    def titles(self) -> dict[str, str]:
        return {it["job_key"]: it["job_title"] or it["public_id"] for it in self.jobs_ever}

    @cached_property
    def today(self) -> dt.date:
        """The day of the latest listing of all organisations."""
        listings = self.warehouse.rows("analytics.listings")
        return max((it["listed_at"].date() for it in listings), default=dt.date.min)

    @cached_property
    def jobs(self) -> list[Row]:
        """The published ones, as the page sorts them."""
        reposts = {it["job_key"] for it in self.jobs_ever if it["reposted_from"]}
        jobs = [it | {"is_repost": it["job_key"] in reposts} for it in self.open_jobs]
        return sorted(
            jobs, key=lambda it: (it["opened_by"], self.titles[it["job_key"]], it["job_key"])
        )

    @cached_property
    def recent(self) -> list[Row]:
        """The days of the last four weeks."""
        return [it for it in self.daily_open_jobs if (self.today - it["day"]).days < 28]

    @cached_property
    def monday(self) -> dict[str, dt.datetime]:
        """The first listing of each organisation on last Monday, or that day's beginning."""
        monday = self.today - dt.timedelta(days=self.today.weekday() or 7)
        found: dict[str, dt.datetime] = {}
        for it in sorted(self.listings, key=lambda it: it["listed_at"]):
            time, name = it["listed_at"], it["organisation"]
            found.setdefault(name, dt.datetime.combine(monday, dt.time()))
            if time.date() == monday and found[name].time() == dt.time():
                found[name] = time
        return found

    def names(self, roles: Iterable[Row]) -> list[str]:
        return [self.titles[it["job_key"]] for it in roles]


def equals_dbt(browser: Driver, warehouse: DuckDB, organisation: str = "") -> None:
    """Every tile and every list, counted from the final tables alone."""
    opened(browser, warehouse, **({"organisation": organisation} if organisation else {}))
    final, lists = Final(warehouse, organisation), whole_lists(browser)
    tiles_equal(browser, final)
    roles_equal(lists, final)
    groups_equal(lists, final)
    events_equal(browser, lists, final)


def tiles_equal(browser: Driver, final: Final) -> None:
    jobs, found = final.jobs, tiles(browser)
    without_pay = sum(not it["has_salary"] for it in jobs)
    estimates = [it for it in final.time_to_close if it["dimension"] == "overall"]
    assert found == {
        "open roles": f"{len(jobs):,}",
        "opened in four weeks": f"{sum(it['opened'] for it in final.recent):,}",
        "closed in four weeks": f"{sum(it['closed'] for it in final.recent):,}",
        "of roles without pay": f"{without_pay / len(jobs):.0%}" if jobs else "\u2013",
        "likely reposts": f"{sum(it['is_repost'] for it in jobs):,}",
        "days until half have closed": (
            shown_median(estimates[0]) if len(estimates) == 1 else "\u2013"
        ),
    }
    if levels := rows(browser, "levels"):
        assert levels[-1] == [day(final.today), f"{len(jobs):,}"]


def roles_equal(lists: Lists, final: Final) -> None:
    jobs = final.jobs
    for name, roles in {
        "oldest": jobs,
        "without_pay": [it for it in jobs[::-1] if not it["has_salary"]],
        "reposts": [it for it in jobs[::-1] if it["is_repost"]],
    }.items():
        assert [row[0] for row in lists[name]] == final.names(roles), name


def groups_equal(lists: Lists, final: Final) -> None:
    for name in ("department", "location"):
        groups: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for job in final.jobs:
            groups[job[name] or "not given"][0] += 1
        for it in final.recent:
            groups[it[name]][1] += it["opened"]
            groups[it[name]][2] += it["closed"]
        shown = {row[0]: [int(cell) for cell in row[1:4]] for row in lists[name]}
        assert shown == {value: counts for value, counts in groups.items() if any(counts)}
    if lists["organisations"]:
        is_open = Counter(it["organisation"] for it in final.jobs)
        assert {row[0]: int(row[1]) for row in lists["organisations"]} == {
            it: is_open[it] for it in final.monday
        }


def events_equal(browser: Driver, lists: Lists, final: Final) -> None:
    periods, changes = final.publication_periods, final.job_changes
    for kind, events in {
        "opened": [it | {"time": it["opened_by"]} for it in periods if it["opened_after"]],
        "closed": [it | {"time": it["closed_by"]} for it in periods if it["closed_by"]],
        "repriced": [
            it | {"time": it["changed_by"]} for it in changes if it["field"] in PAY_FIELDS
        ],
        "edits": [it | {"time": it["changed_by"]} for it in changes],
    }.items():
        events.sort(key=lambda it: (final.titles[it["job_key"]], it["job_key"], it.get("field")))
        events.sort(key=lambda it: it["time"], reverse=True)
        if kind != "repriced":
            assert [row[0] for row in lists[kind]] == final.names(events)
        if kind != "edits":
            since = [it for it in events if it["time"] > final.monday[it["organisation"]]]
            (heading,) = texts(browser, f"#monday_{kind} h3")
            assert heading.split(" ")[0] == f"{len({it['job_key'] for it in since}):,}"
            assert [row[0] for row in lists[f"monday_{kind}"]] == final.names(since)


def shown_median(estimate: Row) -> str:
    if estimate["median_days"] is not None:
        return f"{round(estimate['median_days'], 1):g}"
    return (
        f"> {round(estimate['longest_days'], 1):g}" if estimate["longest_days"] >= 1 else "\u2013"
    )


@of_the_weeks
def test_every_tile_and_list_is_what_dbt_says(
    browser: Driver, weeks: tuple[DuckDB, Tables]
) -> None:
    equals_dbt(browser, weeks[0])

    # Syncs were a week apart, so that all of the last one was since last Monday.
    last_week = weeks[0].rows("analytics.last_week_changes")
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
    equals_dbt(browser, warehouse, names[-1])


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
    levels, flows = rows(browser, "levels"), rows(browser, "flows")
    warehouse = DuckDB(tmp_path)
    shutil.copy(weeks[0].file, warehouse.file)
    now = FIRST + WEEKS * WEEK
    published = [it for it in weeks[1]["job_publications"] if not it["unpublishedAt"]]
    anew = {"openedAfter": None, "firstSeenAt": now, "lastSeenAt": now}
    load(warehouse, weeks[1] | {"job_publications": [it | anew for it in published]})
    build(warehouse)

    readable(browser, axe, warehouse, 1280, "dark")

    drop_known = [[week, *counts] for week, _, *counts in rows(browser, "flows")]
    assert drop_known[:-1] == [[week, *counts] for week, _, *counts in flows]
    assert drop_known[-1][1:] == ["0", "0"]
    later = rows(browser, "levels")
    assert later[: len(levels)] == levels
    assert {row[1] for row in later[len(levels) - 1 :]} == {str(len(published))}
    equals_dbt(browser, warehouse)


@of_the_weeks
def test_an_organisation_that_joins_later_makes_no_jump(
    browser: Driver, axe: str, weeks: tuple[DuckDB, Tables], tmp_path: Path
) -> None:
    opened(browser, weeks[0])
    alone = dict(rows(browser, "levels"))
    warehouse = DuckDB(tmp_path)
    shutil.copy(weeks[0].file, warehouse.file)
    *_, lumen = history(2, "Lumen Books", first=WEEKS - 2)
    load(warehouse, lumen, "lumen")
    build(warehouse, "public_jobs", "lumen")

    readable(browser, axe, warehouse, 1440, "light")

    joined = day(FIRST + (WEEKS - 2) * WEEK)
    first, *_ = rows(browser, "levels")
    assert first == [joined, str(int(alone[joined]) + OPEN_AT_FIRST)]
    assert f"All 2 organisations are known since {joined}." in texts(browser, "#levels p")[0]
    opened(browser, warehouse, organisation="public_jobs")
    assert dict(rows(browser, "levels")) == alone
    for organisation in ("", "public_jobs", "lumen"):
        equals_dbt(browser, warehouse, organisation)


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
    *[("EUR", 500, 700, "year", "EUR 500\u2013700 per year")] * 4,
    ("EUR", 5000, 90000, "year", "EUR 5,000\u201390,000 per year"),
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
        job["seniorityLevel"] = "mid"
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
        assert texts(browser, "#pay h3")[0] == "EUR per year: 7 roles"
        few = {(row[0], row[-1]) for row in cells(browser, FEW)}
        assert few == {("JPY per project", "70"), ("USD, period not given", "60")}
        assert sorted(row[-2] for row in rows(browser, "oldest")) == sorted(it[-1] for it in PAY)
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
