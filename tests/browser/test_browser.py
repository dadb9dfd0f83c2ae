"""A real browser shows what happened in the portal, from the final tables and without a network.

`uv run --with selenium,axe-playwright-python pytest tests/browser` runs it; it needs Chromium and
its driver.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import statistics
from collections import Counter, defaultdict
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from browser.weeks import FIRST, OPEN_AT_FIRST, WEEK, build, history, load, play, run_page
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support.plugins import REPOSITORY
from support.warehouses import DuckDB

from benchmarks import years

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from browser.weeks import Row, Tables

# Those that read the same six weeks.
of_the_weeks = pytest.mark.xdist_group("weeks")

Driver = Any  # selenium is not installed for the checks
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
)
WEEKS = 6
AMOUNTS = ("Roles", "Lowest", "Median", "Highest")
COLUMNS = {"department": "department", "location": "location", "seniority_level": "seniorityLevel"}
EVIL = '<img src="https://evil.example/x"><script>document.title = "owned"</script>'
AXE = (
    "axe.run().then((it) => arguments[0](it.violations.map((one) => [one.id, one.nodes[0].html])))"
)
# What is wider than the window or its own box.
CUT = """
    return [...document.querySelectorAll("html, section, #tiles > div, table, td, th")]
        .filter((it) => it.checkVisibility() && it.scrollWidth > it.clientWidth + 1)
        .map((it) => it.outerHTML.slice(0, 200));
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
    """The first table of a section, cell by cell."""
    script = "return [...document.querySelector(arguments[0]).rows].map((row) => "
    script += "[...row.cells].map((cell) => cell.textContent))"
    found: list[list[str]] = browser.execute_script(script, f"#{section} table")
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
            min(it["minSalary"] for it in of),
            statistics.median((it["minSalary"] + it["maxSalary"]) / 2 for it in of),
            max(it["maxSalary"] for it in of),
        )
        for group, of in groups.items()
    }


def day(time: Any) -> str:
    return f"{time:%-d %b %Y}"


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
    assert {(it["Week of"], it["What"]): int(it["Roles"]) for it in bars} == flows
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
    bars = marks(browser, "pay")
    assert {
        (it["Unit"], it["Seniority"], *(float(it[name].replace(",", "")) for name in AMOUNTS))
        for it in bars
    } == pay_by_seniority(is_open)
    expected = sorted(is_open, key=lambda it: (it["firstSeenAt"], it["jobTitle"], it["id"]))[:10]
    assert [row[0] for row in rows(browser, "oldest")] == [it["jobTitle"] for it in expected]
    links = browser.find_elements("css selector", "#oldest a")
    assert [it.get_attribute("href") for it in links] == [it["jobUrl"] for it in expected]
    assert complaints(browser) == []


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

    assert rows(browser, "flows") == flows
    later = rows(browser, "levels")
    assert later[: len(levels)] == levels
    assert {row[1] for row in later[len(levels) - 1 :]} == {str(len(published))}


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
]


@pytest.mark.parametrize(
    ("state", "width", "theme", "shows"),
    [
        ("no job", 390, "light", {"#freshness": "No job has been seen yet.", ".value": "0"}),
        ("one job", 390, "dark", {"#freshness": "Stale: the list", "#oldest th span": EVIL}),
        ("pay", 1280, "light", {"#without_pay p": "The newest first."}),
        (
            "closed",
            1280,
            "light",
            {"#tiles div:last-child dd:nth-child(3)": "3 of 3 roles seen opening have closed"},
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
        count = {"no job": 0, "one job": 1, "pay": len(PAY), "closed": 1}[state]
        tables = {name: rows[:count] for name, rows in next(history(1)).items()}
        for job, pay in zip(tables["jobs"], PAY, strict=False):
            job |= dict(
                zip(("currency", "minSalary", "maxSalary", "salaryPeriod"), pay, strict=False)
            )
            if state == "one job":
                job |= {"jobTitle": EVIL, "department": f"{EVIL} {'long ' * 40}", "jobUrl": EVIL}
        for place, days in enumerate(CLOSED if state == "closed" else ()):
            times = (FIRST - dt.timedelta(days=it) for it in days)
            name = {"id": f"closed-{place}", "publicId": f"closed-{place}"}
            tables["job_publications"].append(name | dict(zip(TIMES, times, strict=True)))
        load(warehouse, tables)
    build(warehouse)

    readable(browser, axe, warehouse, width, theme)

    for selector, text in shows.items():
        assert text in texts(browser, selector)[0]
    if state == "pay":
        units = texts(browser, "#pay h3")
        assert units[:2] == ["EUR per year: 2 roles", "JPY per project: 1 role"]
        assert units[2:] == ["USD, period not given: 1 role"]
        assert sorted(row[-2] for row in rows(browser, "oldest")) == sorted(it[-1] for it in PAY)
        assert "2 ranges with one end" in texts(browser, "#pay p")[0]
