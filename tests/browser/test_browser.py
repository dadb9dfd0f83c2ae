"""A real browser shows the numbers of the warehouse, without a network.

`uv run --with selenium pytest tests/browser` runs it; it needs Chromium and its driver.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from browser.weeks import history, load, run_page
from selenium import webdriver
from selenium.webdriver.support.ui import Select, WebDriverWait

from benchmarks import years
from dashboard import page

if TYPE_CHECKING:
    from collections.abc import Iterator

Driver = Any  # selenium is not installed for the checks
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
)
ROLES = """
    with roles as (
        select * from public_jobs.job_publications join public_jobs.jobs using (id) where {}
    )
"""
LEVELS = """
    select strftime(moment, '%-d %b %Y %H:%M'), count(*) filter (
        where first_seen_at <= moment and coalesce(unpublished_at > moment, true)
    )
    from roles
    cross join (select distinct first_seen_at as moment from public_jobs.job_publications)
    group by moment order by moment
"""
FLOWS = """
    select strftime(date_trunc('week', moment), '%-d %b %Y'), event, count(*)
    from (
        select first_seen_at as moment, 'opened' as event from roles where opened_after is not null
        union all
        select unpublished_at, 'closed' from roles where unpublished_at is not null
    )
    group by all
"""
PAY = """
    select currency, seniority_level, count(*),
        min(min_salary), median((min_salary + max_salary) / 2), max(max_salary)
    from roles where unpublished_at is null group by all
"""
OLDEST = """
    select job_title, date_diff('day', first_seen_at, last_seen_at)
    from roles where unpublished_at is null order by first_seen_at, job_title, id limit 10
"""
AMOUNTS = ("Roles", "Lowest", "Median", "Highest")
LABELS = """
    const labels = document.querySelectorAll("svg .role-axis-label text");
    return [...new Set([...labels].map((it) => it.getAttribute("fill")))];
"""
EVIL = '<img src="https://evil.example/x"><script>document.title = "owned"</script>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Driver]:
    options = webdriver.ChromeOptions()
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def opened(browser: Driver, warehouse: str) -> None:
    run_page(warehouse)
    browser.get(Path(warehouse).with_suffix(".html").as_uri())
    wait_for(browser, 0)


def wait_for(browser: Driver, choice: int) -> None:
    shows = "return document.body.dataset.shown"
    WebDriverWait(browser, 60).until(lambda it: it.execute_script(shows) == str(choice))


def choose(browser: Driver, label: str) -> None:
    select = Select(browser.find_element("id", "choice"))
    select.select_by_visible_text(label)
    wait_for(browser, int(select.first_selected_option.get_attribute("value") or 0))


def texts(browser: Driver, selector: str) -> list[str]:
    found = browser.find_elements("css selector", selector)
    return [it.get_attribute("textContent") or "" for it in found]


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
        url for url in urls if not url.startswith(("file:", "data:"))
    ]


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse.duckdb")


@pytest.mark.parametrize("department", ["all roles", "Sales"])
def test_the_page_shows_the_numbers_of_the_warehouse(
    browser: Driver, file: str, department: str
) -> None:
    load(file, history())
    opened(browser, file)
    choose(browser, department)

    roles = ROLES.format(f"'{department}' in ('all roles', department)")
    with duckdb.connect(file, read_only=True) as connection:
        levels, flows, pay, oldest = (
            connection.execute(roles + query).fetchall() for query in (LEVELS, FLOWS, PAY, OLDEST)
        )
    points, bars, medians = (
        marks(browser, "levels"),
        marks(browser, "flows", "bar"),
        marks(browser, "pay"),
    )
    assert [(it["UTC"], int(it["Open roles"])) for it in points] == levels
    assert texts(browser, "#tiles b")[0] == str(levels[-1][1])
    assert {(it["Week of"], it["What"], int(it["Roles"])) for it in bars} == set(flows)
    assert {
        (it["Currency"], it["Seniority"], *map(number, [it[name] for name in AMOUNTS]))
        for it in medians
    } == set(pay)
    cells = texts(browser, "#oldest td")
    rows = zip(cells[::4], map(number, cells[3::4]), strict=True)
    assert list(rows) == oldest
    assert complaints(browser) == []


def number(text: str) -> float:
    return float(text.replace(",", "").rstrip("+"))


@pytest.mark.parametrize(
    ("state", "points", "theme", "width"),
    [
        ("empty", 0, "light", 400),
        ("one listing", 0, "light", 1280),
        ("sixty departments", 60, "dark", 400),
        ("two years", 105, "dark", 1280),
    ],
)
def test_any_warehouse_makes_a_small_page_without_errors_or_requests(
    browser: Driver, file: str, state: str, points: int, theme: str, width: int
) -> None:
    if state == "two years":
        with duckdb.connect(file) as connection:
            connection.execute(years.raw_tables(130_000))
    else:
        rows = history(60 if state == "sixty departments" else 1)
        for place, job in enumerate(rows["jobs"]):
            job["jobTitle"] = EVIL
            job["department"] = f"{EVIL} {place % 60} {'long ' * 40}"
        load(file, rows)
    if state == "empty":
        with duckdb.connect(file) as connection:
            connection.execute("delete from public_jobs.job_publications")
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.set_window_size(width, 1000)

    opened(browser, file)

    assert len(texts(browser, "h2")) == 8
    assert len(marks(browser, "levels")) == points
    assert complaints(browser) == []
    assert browser.title == "Public jobs"
    overflow = "return document.documentElement.scrollWidth - innerWidth"
    assert browser.execute_script(overflow) <= 0
    drawn = browser.execute_script(LABELS)
    assert drawn == ([] if state == "empty" else [page.THEMES[theme]["text"]])
    assert Path(file).with_suffix(".html").stat().st_size < 1_400_000
