"""A real browser shows what happened in the portal, from the final tables and without a network.

`uv run --with selenium,axe-playwright-python pytest tests/browser` runs it; it needs Chromium and
its driver.
"""

import base64
import csv
import datetime as dt
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
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
from public_jobs_sandbox.weeks import copy_transform
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support.expected import DAY, Tables, make_table
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
OPEN_AT_FIRST, CLOSE_IN_A_DAY, MOST_OPENINGS = 90, 0.014, 3
NOT_READ = range(19, 21)  # the days of a weekend
LISTS = ("open", "opened", "closed", "overdue", "old", "paid", "unpaid", "reposts", "events")
PICTURES = ("levels", "flows", "department", "closing", "ages", "pay", "places")
# The day whose listing has another name for a department.
RENAMED, OLD_NAME, NEW_NAME = 21, "People", "People & Culture"
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
    Promise.all(opened).then(() => arguments[0]());
"""
SHOW = """
    document.querySelectorAll("#lists button, #happened button").forEach((it) => {
        if (/^Show (all|1,000)/.test(it.textContent)) it.click();
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


@pytest.fixture(autouse=True)
def window(browser: Driver) -> None:
    """Each test begins with the same one."""
    resize(browser, 1280, "light")


def history(
    weeks: int, organisation: str = "Halden Robotics", *, first: int = 0
) -> Iterator[Tables]:
    """Yield the jobs and publications each Monday, of a list that is read each day but two.

    Each day some jobs close and open, each week one is edited; one department is renamed.

    Args:
        weeks: How many Mondays.
        organisation: Whose jobs.
        first: The week of the first one.
    """
    random = Random(organisation)  # noqa: S311
    new = iter(make_jobs(OPEN_AT_FIRST + 7 * MOST_OPENINGS * weeks, organisation=organisation))
    jobs: dict[str, Row] = {}
    publications: list[Row] = []
    before = None
    for day in range(7 * weeks - 6):
        # What happens on a day without a listing is seen by the next one.
        listed_at = FIRST + first * WEEK + (max(NOT_READ) + 1 if day in NOT_READ else day) * DAY
        still = [it for it in publications if stays(it, random, day, listed_at)]
        if day and day % 7 == 0:
            edited = jobs[random.choice(still)["id"]]
            edited["maxSalary"] = (edited["maxSalary"] or 0) + 5000
        for _ in range(random.randint(0, MOST_OPENINGS) if day else OPEN_AT_FIRST):
            job = next(new)
            jobs[job["id"]] = job | {"salaryPeriod": "year"}
            times = (before, listed_at, listed_at, None)
            still.append(publication(job["id"], job["publicId"], *times))
            publications.append(still[-1])
        for job in (jobs[it["id"]] for it in still if day >= RENAMED):
            job["department"] = NEW_NAME if job["department"] == OLD_NAME else job["department"]
        if day not in NOT_READ:
            before = listed_at
        if day % 7 == 0:
            yield {"jobs": list(jobs.values()), "job_publications": publications}


def stays(it: Row, random: Random, day: int, listed_at: dt.datetime) -> bool:
    """Whether a job stays open on a day; writes down what the listing sees of it."""
    if it["unpublished_at"] is None and random.random() < CLOSE_IN_A_DAY:
        it["unpublished_at"] = listed_at
    elif it["unpublished_at"] is None and day not in NOT_READ:
        it["last_seen_at"] = listed_at
    return it["unpublished_at"] is None


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


def number(cell: str) -> float:
    return float(cell.replace(",", "").replace("\u2212", "-").replace("\u00b1", ""))


def day_of(cell: str) -> dt.date:
    return dt.datetime.strptime(cell, "%d %b %Y").date()  # noqa: DTZ007


def everything(browser: Driver) -> Lists:
    """All that is behind a click: the numbers of the pictures, and the lists."""
    browser.execute_async_script(OPEN)
    browser.execute_script(SHOW)
    found = {name: rows(browser, f"#{name} table") for name in PICTURES}
    return found | {name: rows(browser, f"#list-{name} table") for name in LISTS}


# The rows of the tables that have what the page filters by. What was open before a department got
# its name counts as it is called now.
ROWS = """
    with places as (
        select distinct location, coalesce(city || ', ' || country, city, location) as place
        from analytics.job_spells
    ),
    renames as (
        select distinct organisation, old_value, new_value, happened_on from analytics.job_events
        where is_rename and field = 'department'
    ),
    open_jobs_by_day as (
        select it.* replace (coalesce(new_value, department) as department), place
        from analytics.open_jobs_by_day as it left join places using (location)
        left join renames on department = old_value and day < renames.happened_on
            and it.organisation = renames.organisation
    ),
    job_events as (
        select it.* replace (coalesce(renames.new_value, department) as department), place
        from analytics.job_events as it left join places using (location)
        left join renames on department = renames.old_value
            and it.happened_on <= renames.happened_on and it.organisation = renames.organisation
        where event <> 'found'
    )
"""
NAMES = ("organisation", "department", "place", "seniority_level", "type", "currency")


def asked(warehouse: DuckDB, query: str) -> list[Row]:
    """The rows that a query selects; views want the file under its own name."""
    with duckdb.connect(str(warehouse.file), read_only=True) as connection:
        answer = connection.execute(query)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


class Chosen:
    """The rows that a choice leaves of the final tables, and the days that the page shows.

    Args:
        warehouse: Has the tables.
        choice: What the address says.
    """

    def __init__(self, warehouse: DuckDB, choice: dict[str, str]) -> None:
        self._warehouse = warehouse
        literals = {name: value.replace("'", "''") for name, value in choice.items()}
        names = [it for it in NAMES if it in choice]
        words = literals.get("q", "").lower().split()
        self._where = " and ".join(
            ["true"]
            + [f"coalesce({it}, 'not given') = '{literals[it]}'" for it in names]
            + [f"contains(lower(coalesce(job_title, public_id)), '{it}')" for it in words]
        )
        of = f"where organisation = '{choice['organisation']}'" if "organisation" in choice else ""
        days = "min(day) as first_day, max(day) filter (where listings > 0) as last_day"
        known_days = f"select {days} from analytics.nights {of} group by organisation"  # noqa: S608
        (known,) = self._ask(f"select max(first_day) as a, max(last_day) as z from ({known_days})")  # noqa: S608
        self.first, self.last = known["a"], known["z"]
        self.to = self._within(choice.get("to"), self.last, self.last)
        four_weeks = max(self.to - 4 * WEEK, self.first)
        self.then = self._within(choice.get("from"), four_weeks, self.to)

    def _within(self, text: str | None, otherwise: dt.date, last: dt.date) -> dt.date:
        return min(max(dt.date.fromisoformat(text), self.first), last) if text else otherwise

    def _ask(self, query: str) -> list[Row]:
        return asked(self._warehouse, query)

    def open(self, select: str, day: dt.date, group: str = "") -> list[tuple[Any, ...]]:
        """What was open at the end of a day."""
        query = f"select {select} from open_jobs_by_day where day = '{day}'"  # noqa: S608
        return self._answer(query, group)

    @cached_property
    def _roles(self) -> dict[dt.date, int]:
        query = "select day, count(*) from open_jobs_by_day where true"
        return dict(self._answer(query, "group by day"))

    @cached_property
    def _events(self) -> list[tuple[str, dt.date, int]]:
        query = "select event, happened_on, count(*) from job_events where true"
        return self._answer(query, "group by all")

    def _answer(self, query: str, group: str = "") -> list[tuple[Any, ...]]:
        answers = self._ask(f"{ROWS} {query} and {self._where} {group}")
        return [tuple(it.values()) for it in answers]

    def roles(self, day: dt.date) -> int:
        """How many roles were open at the end of a day."""
        return self._roles.get(day, 0)

    def happened(self, since: dt.date, until: dt.date, *events: str) -> int:
        """How many events there were after a day, up to another one."""
        its = [it for it in self._events if not events or it[0] in events]
        return sum(count for _, day, count in its if since < day <= until)

    def opened(self, since: dt.date, until: dt.date) -> int:
        return self.happened(since, until, "opened", "reopened")

    def closed(self, since: dt.date, until: dt.date) -> int:
        return self.happened(since, until, "closed")


LATE = """days_open_at_least > (
    select max(median_days) from analytics.time_to_close as it
    where dimension = 'department' and it.organisation = open_jobs_by_day.organisation
        and value = coalesce(open_jobs_by_day.department, 'not given'))"""
GIVEN = "coalesce({}, 'not given')"


def equals_tables(browser: Driver, warehouse: DuckDB, choice: dict[str, str]) -> None:
    """Headline, tiles, pictures and lists have the numbers of the final tables."""
    it, shown = Chosen(warehouse, choice), everything(browser)
    then, to, roles = it.then, it.to, it.roles(it.to)
    spans = {"opened": it.opened(then, to), "closed": it.closed(then, to)}

    headline, lead = texts(browser, "h1")[0], texts(browser, "#lead")[0]
    assert re.findall(r"(\d+|no) roles? (?:is|are) open", headline.lower()) == [str(roles or "no")]
    change = roles - it.roles(then)
    if then == to or not (roles or roles - change):
        assert " than " not in headline
    elif change:
        assert f", {abs(change)} {'more' if change > 0 else 'fewer'} than " in headline
    else:
        assert ", as many as " in headline
    said = dict(
        re.findall(r"(opened|closed)\b", lead)
        and [(word, int(count)) for count, word in re.findall(r"(\d+) (opened|closed)\b", lead)[:2]]
    )
    assert then == to or not any(spans.values()) or said == spans

    count = "count(*) filter (where {})".format
    parts = ("has_salary", "not has_salary", "days_open_at_least >= 28", LATE)
    ((paid, unpaid, old, late),) = it.open(", ".join(map(count, parts)), to)
    percent = [f"{int(100 * part / roles + 0.5)}%" if roles else "\u2013" for part in (paid, old)]
    numbers = [str(roles), *map(str, spans.values()), *percent, str(late)]
    unknown = {"\u2013"}
    tiles_ = tiles(browser)
    # Nothing is known of what happened before the second day, or of the age of what was open then.
    assert tiles_[:1] + tiles_[3:4] == numbers[:1] + numbers[3:4]
    assert [
        one for one, two in zip(tiles_, numbers, strict=True) if one != two and one not in unknown
    ] == []
    assert it.to == it.first or tiles_[1:3] == numbers[1:3]
    assert then > it.first + 4 * WEEK or "\u2013" in tiles_[4] or roles

    for cell, open_roles, *_ in shown["levels"]:
        assert number(open_roles) == it.roles(day_of(cell)), cell
    for cell, opened_, closed_, *_ in shown["flows"]:
        since, until = max(day_of(cell) - DAY, it.first), min(day_of(cell) + 6 * DAY, to)
        assert (int(opened_), int(closed_)) == (it.opened(since, until), it.closed(since, until))
        # The week of the first listing has a bar only if something happened in it.
        assert day_of(cell) > it.first or opened_ != "0" or closed_ != "0"
    department = GIVEN.format("department")
    now, before = (
        dict(it.open(f"{department}, count(*)", on, "group by all")) for on in (to, then)
    )
    expected = [(one, now.get(one, 0), before.get(one, 0)) for one in {*now, *before}]
    found = [(row[0], int(row[1]), *map(int, row[2:3])) for row in shown["department"]]
    assert sorted(found) == sorted(
        one[: 2 if then == to else 3] for one in expected if any(one[1 : 2 if then == to else 3])
    )
    places = it.open(f"{department}, {GIVEN.format('place')}, count(*)", to, "group by all")
    assert sorted((a, b, int(c)) for a, b, c in shown["places"]) == sorted(places)
    assert to == it.first or sum(number(row[1]) for row in shown["ages"]) == roles

    headings = {name: texts(browser, f"#list-{name} summary")[0] for name in LISTS}
    every = Chosen(
        warehouse, {k: v for k, v in choice.items() if k in ("organisation", "from", "to")}
    )
    for name, many, of in (
        ("open", roles, every.roles(to)),
        ("opened", spans["opened"], every.opened(then, to)),
        ("closed", spans["closed"], every.closed(then, to)),
        ("overdue", late, every.open(count(LATE), to)[0][0]),
        ("paid", paid, every.open(count("has_salary"), to)[0][0]),
        ("unpaid", unpaid, every.open(count("not has_salary"), to)[0][0]),
        ("events", it.happened(then, to), every.happened(then, to)),
    ):
        assert headings[name].endswith(f"({many} of {of})" if many < of else f"({many})"), name
        assert len(shown[name]) == many


def choices(warehouse: DuckDB, seed: int) -> dict[str, str]:
    """A random choice of filters that a role has, and of days, in any order and outside, too."""
    random = Random(seed)  # noqa: S311
    every_row = f"{ROWS} select * from open_jobs_by_day order by job_key, day"  # noqa: S608
    row = random.choice(asked(warehouse, every_row))
    choice = {it: row[it] or "not given" for it in NAMES if random.random() < 0.2}
    if random.random() < 0.2:
        words = (row["job_title"] or row["public_id"]).split()
        choice["q"] = " ".join(random.sample(words, min(2, len(words))))
    days = [FIRST.date() + random.randint(-3, 40) * DAY for _ in range(2)]
    names = [it for it in ("from", "to") if random.random() < 0.7]
    return choice | {name: f"{day}" for name, day in zip(names, days, strict=False)}


@pytest.mark.parametrize("seed", range(24))
@of_the_weeks
def test_every_number_is_that_of_the_tables(browser: Driver, weeks: DuckDB, seed: int) -> None:
    """For random filters and pairs of days, of which one may be before, after or the other."""
    choice = choices(weeks, seed)
    opened(browser, weeks, **choice)

    equals_tables(browser, weeks, choice)

    assert complaints(browser) == []


# Half of 1,280 pixels is a window at 200 %.
SIZES = [(1366, "light"), (800, "dark"), (640, "light"), (390, "dark")]


@pytest.mark.parametrize(("width", "theme"), SIZES)
@of_the_weeks
def test_all_can_read_it(browser: Driver, weeks: DuckDB, width: int, theme: str) -> None:
    readable(browser, weeks, width, theme)
    opened(browser, weeks)
    lists = "document.querySelector('#lists').getBoundingClientRect().height"
    height = f"return document.documentElement.scrollHeight - {lists}"
    assert browser.execute_script(height) <= 5300
    # The largest places are there, and the others on request.
    assert [it for it in texts(browser, "#places text") if "others" in it]
    browser.execute_script("document.querySelector('#places button').click()")
    assert "others" not in "".join(texts(browser, "#places .end, #places .plain:not(.middle)"))


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
    opened(browser, warehouse, organisation=names[0])
    equals_tables(browser, warehouse, {"organisation": names[0]})


def focused(browser: Driver) -> str:
    """What has the focus says."""
    return str(browser.execute_script("return document.activeElement.textContent"))


def said(browser: Driver, text: str) -> None:
    """Wait until a screen reader is told something."""
    WebDriverWait(browser, 60).until(lambda it: text in texts(it, "#said")[0])


def noticed(browser: Driver, text: str) -> None:
    """Wait until the page says what it did."""
    WebDriverWait(browser, 60).until(lambda it: text in texts(it, "#notice")[0])


@of_the_weeks
def test_an_empty_span_has_nothing_in_it(browser: Driver, weeks: DuckDB) -> None:
    """Of a day that is compared with itself or a later one, and the page says so."""
    for then in ("2026-08-24", "2026-09-02"):
        opened(browser, weeks, to="2026-08-24", **{"from": then})
        assert tiles(browser)[1:3] == ["0", "0"]
        assert " than " not in texts(browser, "h1")[0]
        assert "nothing is compared" in texts(browser, "#notice")[0]


ZONES = ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"]


@pytest.mark.parametrize("zone", ZONES)
@of_the_weeks
def test_a_date_can_be_typed_wherever_the_browser_is(
    browser: Driver, weeks: DuckDB, zone: str
) -> None:
    """It counts once the page has it, is one entry of the history, and Back undoes it."""
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
    try:
        opened(browser, weeks)
        whole = texts(browser, "h1")[0]
        assert (
            f"list read {day(FIRST + (WEEKS - 1) * WEEK)} 04:00 UTC" in texts(browser, "#about")[0]
        )
        field = browser.find_element("css selector", "[name=to]")
        field.send_keys("08242026")
        said(browser, "open on 24 Aug 2026")
        assert field.get_attribute("value") == "2026-08-24"

        browser.execute_script("arguments[0].blur()", field)
        field.send_keys("12312026", Keys.TAB, Keys.TAB)  # the first goes to its calendar
        noticed(browser, "As of 31 Dec 2026 is after the latest listing: 7 Sep 2026 is shown.")
        assert field.get_attribute("value") == "2026-09-07"
        field.send_keys("09", Keys.DELETE)
        assert field.get_property("validity")["badInput"]
        browser.execute_script("arguments[0].blur()", field)
        noticed(browser, "As of was no whole date: 7 Sep 2026 is shown.")
        assert field.get_attribute("value") == "2026-09-07"
        browser.back()
        said(browser, "open on 24 Aug 2026")
        assert field.get_attribute("value") == "2026-08-24"
        browser.back()
        said(browser, whole)
    finally:
        browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


@of_the_weeks
def test_a_mark_opens_what_it_counts(browser: Driver, weeks: DuckDB) -> None:
    """By keyboard: the address says so, the list has the focus, and Back undoes it."""
    for name in ("flows", "department", "closing", "ages", "pay", "places"):
        opened(browser, weeks)
        whole = texts(browser, "h1")[0]
        links = f"#{name} .plot a"
        assert len(browser.find_elements("css selector", f"{links}[tabindex='0']")) == 1
        browser.execute_script(f"document.querySelector(`{links}[tabindex='0']`).focus()")
        browser.switch_to.active_element.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        mark = browser.switch_to.active_element.get_attribute("aria-label")
        count = re.findall(r"(\d+) (?:roles?|closed|opened|overdue)(?: open)?\b", mark)
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        key = (
            "closed" if name == "flows" else {"closing": "overdue", "pay": "paid"}.get(name, "open")
        )
        WebDriverWait(browser, 60).until(lambda it, key=key: f"list={key}" in it.current_url)
        heading = WebDriverWait(browser, 60).until(lambda it: focused(it).partition(" (")[2])
        expected = count[0] if name == "department" else count[-1]
        assert heading.partition(" of ")[0].rstrip(")") == expected, mark
        assert len(rows(browser, f"#list-{key} table")) == min(int(expected), 50)
        browser.back()
        said(browser, whole)
        assert "list" not in browser.current_url
        assert browser.switch_to.active_element.get_attribute("aria-label") == mark


@of_the_weeks
def test_a_tile_opens_what_it_counts(browser: Driver, weeks: DuckDB) -> None:
    opened(browser, weeks)
    for place, key in enumerate(("open", "opened", "closed", "paid", "old", "overdue")):
        link = browser.find_elements("css selector", "#tiles .value a")[place]
        shown = link.text
        link.send_keys(Keys.ENTER)
        WebDriverWait(browser, 60).until(
            lambda it: it.execute_script("return document.activeElement.tagName") == "SUMMARY"
        )
        heading, many = focused(browser), len(rows(browser, f"#list-{key} table"))
        assert many
        assert shown.endswith("%") or f"({shown})" in heading
        assert many == min(50, int(heading.rpartition("(")[2].rstrip(")")))
        browser.back()
        WebDriverWait(browser, 60).until(lambda it: "list" not in it.current_url)


@of_the_weeks
def test_a_rename_is_one_department(browser: Driver, weeks: DuckDB) -> None:
    """With one line, and its old name leads to it."""
    opened(browser, weeks)
    called = f"{OLD_NAME} is called {NEW_NAME} since 24 Aug."
    assert called in texts(browser, "#lead")[0]
    assert called in texts(browser, "#department .note")[0]
    names = [row[0] for row in everything(browser)["department"]]
    assert NEW_NAME in names
    assert OLD_NAME not in names

    opened(browser, weeks, department=OLD_NAME)
    assert texts(browser, "h1")[0].startswith(f"{NEW_NAME}: ")
    assert called in texts(browser, "#notice")[0]


@of_the_weeks
def test_the_page_says_what_it_did_not_find(browser: Driver, weeks: DuckDB) -> None:
    opened(browser, weeks, department="Alchemy", q="engineer alchemist")
    notice = texts(browser, "#notice")[0]
    assert "No role is known whose department is \u201cAlchemy\u201d: all departments" in notice
    assert "has \u201cengineer alchemist\u201d in its title" in notice
    assert texts(browser, "h1")[0].startswith(
        "\u201cengineer alchemist\u201d in the title: no role"
    )

    title_ = next(row[0] for row in everything_of(browser, weeks) if len(row[0].split()) > 1)
    backwards = " ".join(reversed(title_.upper().split()))
    opened(browser, weeks, q=backwards, list="open")
    assert title_ in [row[0] for row in rows(browser, "#list-open table")]


def everything_of(browser: Driver, warehouse: DuckDB) -> list[list[str]]:
    opened(browser, warehouse, list="open")
    return rows(browser, "#list-open table")


@of_the_weeks
def test_what_happened_between_two_listings_says_so(browser: Driver, weeks: DuckDB) -> None:
    opened(browser, weeks, to="2026-08-25", **{"from": "2026-08-20"})
    shown = everything(browser)
    for days in ({row[-2] for row in shown["closed"]}, {row[-1] for row in shown["opened"]}):
        assert {it for it in days if it.startswith("between")} == {"between 21 and 24 Aug 2026"}
    assert "between 21 and 24 Aug" in texts(browser, "#happened li :first-child")


@of_the_weeks
def test_a_link_shows_later_what_it_shows_now(browser: Driver, weeks: DuckDB) -> None:
    """And the page says what it copied, or has it copied by hand."""
    opened(browser, weeks, department="Sales", list="closed")
    for answer, word in (("Promise.resolve()", "Copied"), ("Promise.reject()", "Copy this")):
        script = "navigator.clipboard.writeText = (it) => { document.body.dataset.copied = it; "
        browser.execute_script(f"{script} return {answer}; }}")
        browser.find_element("css selector", "form button:last-child").send_keys(Keys.ENTER)
        noticed(browser, word)
        copied = browser.find_element("css selector", "body").get_attribute("data-copied")
        name = weeks.file.with_suffix(".html").name
        assert copied == f"{name}#department=Sales&list=closed&from=2026-08-10&to=2026-09-07"
        assert copied in texts(browser, "#notice")[0]


@of_the_weeks
def test_a_print_has_all_that_it_says(browser: Driver, weeks: DuckDB) -> None:
    opened(browser, weeks, **{"from": "2026-08-04"})
    for width in (1280, 390):
        resize(browser, width, "light")
        browser.execute_script("dispatchEvent(new Event('beforeprint'))")
        note = texts(browser, "#happened .note")[0]
        counts = [int(it) for it in re.findall(r"\d+", note)]
        assert sum(counts) == len(browser.find_elements("css selector", "#happened li")) > 14
        browser.execute_script("dispatchEvent(new Event('afterprint'))")


@of_the_weeks
def test_filters_are_in_the_address_and_work_by_keyboard(browser: Driver, weeks: DuckDB) -> None:
    """And nothing that replaces what has the focus drops it, or is silent."""
    opened(browser, weeks)
    whole = texts(browser, "h1")[0]

    browser.execute_script("document.querySelector('#lead a:last-of-type').focus()")
    browser.switch_to.active_element.send_keys(Keys.TAB, "Sal", Keys.ENTER)
    said(browser, "Sales: ")
    assert browser.current_url.endswith("#department=Sales")
    assert browser.execute_script("return document.activeElement.name") == "department"
    shown = everything(browser)
    assert {row[1] for row in shown["open"]} == {"Sales"}
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
        shown = [int(row[-1].split()[-1]) for row in rows(browser, "#lists table")]
        assert shown == sorted(shown, reverse=is_down)
        assert len({*shown}) > 1


@of_the_weeks
def test_a_picture_is_saved_whole(browser: Driver, weeks: DuckDB) -> None:
    """With its title, legend, filter, days and source, and a name that says the same."""
    opened(browser, weeks, department="Engineering")
    for name in PICTURES:
        file, drawn = saved(browser, f"#{name} [aria-label^='Save as SVG']")
        since = {"levels": "08-03", "flows": "08-04", "department": "08-10"}.get(name)
        stem = f"{name}-{f'2026-{since}-to-' if since else ''}2026-09-07-Engineering"
        assert file == f"{stem}.svg"
        words = " ".join(re.findall(r">([^<>]+)</text>", drawn)).replace("&amp;", "&")
        for text in (texts(browser, f"#{name} h2")[0], "\u00b7 Engineering \u00b7", "7 Sep 2026"):
            assert text in words
        note = browser.execute_script(
            "return document.querySelector(arguments[0]).lastChild.textContent", f"#{name} .note"
        )
        assert note in words
        assert [it for it in texts(browser, f"#{name} .key + span") if it not in words] == []
        assert "Source: published jobs of public_jobs, list read 7 Sep 2026 04:00 UTC" in words
        assert "var(--" not in re.sub(r'style="[^"]*"', "", drawn)
        file, image = saved(browser, f"#{name} [aria-label^='Save as PNG']")
        assert file == f"{stem}.png"
        header = base64.b64decode(image.partition(",")[2])
        assert header[1:4] == b"PNG"
        # Two pixels for each of the picture's.
        assert int.from_bytes(header[16:20], "big") > 800
    assert complaints(browser) == []


def saved(browser: Driver, button: str) -> tuple[str, str]:
    """The name and content of the file that a button makes."""
    script = """
        const [button, done] = arguments;
        let text = null;
        URL.createObjectURL = (it) => { text = it.text(); return "blob:"; };
        HTMLAnchorElement.prototype.click = function click() {
            (text ?? Promise.resolve(this.href)).then((it) => done([this.download, it]));
        };
        document.querySelector(button).click();
    """
    name, text = browser.execute_async_script(script, button)
    return name, text


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
    browser.execute_async_script(OPEN)
    # More rows of the same kind only take its time.
    assert browser.execute_async_script(AXE) == []
    everything(browser)
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
        job["department"] = "All" if job["minSalary"] == 80000 else "Kitchen"
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
        assert texts(browser, "[name=department] option") == ["All departments", "All", "Kitchen"]
        assert texts(browser, "[name=type] option") == ["All types", "CDI", "Full time"]
        assert "2 roles in another currency" in texts(browser, "#pay .note")[0]
        # A range that is cut says so, and pay of a month how it was made yearly.
        assert "up to 900k" in texts(browser, "#pay text")
        assert browser.find_elements("css selector", "#pay .arrow")
        assert "Made yearly: pay per month \u00d7 12 (1 role)" in texts(browser, "#pay .note")[0]
        browser.execute_script(
            "const it = document.querySelector('#pay select'); it.value = 'JPY per project';"
            "it.dispatchEvent(new Event('change'))"
        )
        said(browser, "open")
        assert texts(browser, "#pay h2") == ["What roles pay in JPY per project"]
    if state == "one job":
        shown = everything(browser)
        assert shown["open"][0][0] == EVIL
        _, (row,) = csv_of(browser, "open")
        assert row["place"] == INERT
        assert row["job_title"] == EVIL


@of_the_weeks
def test_a_csv_has_what_the_tables_have(browser: Driver, weeks: DuckDB) -> None:
    """The id, and for how long it was open; no day that is none."""
    opened(browser, weeks, department="Sales", to="2026-09-01")
    browser.execute_async_script(OPEN)
    chosen = Chosen(weeks, {"department": "Sales", "to": "2026-09-01"})
    name, records = csv_of(browser, "open")
    assert name == "open-2026-09-01-Sales.csv"
    found = [(it["id"], float(it["days_open"]), it["opened_on"]) for it in records]
    expected = chosen.open("id, days_open_at_least, coalesce(opened_on::text, '')", chosen.to)
    assert sorted(found) == sorted(expected)
    opened(browser, weeks, to="2026-09-01")
    browser.execute_async_script(OPEN)
    chosen = Chosen(weeks, {"to": "2026-09-01"})
    name, records = csv_of(browser, "closed")
    assert name == "closed-2026-08-04-to-2026-09-01.csv"
    assert len(records) == chosen.closed(chosen.then, chosen.to) > 0
    assert all("2026-08-04" < it["closed_on"] <= "2026-09-01" for it in records)
    assert all(it["days_open"] for it in records)
    assert {(it["closed_on"], it["closed_after"]) for it in records if it["closed_after"]} == {
        ("2026-08-24", "2026-08-21")
    }


def csv_of(browser: Driver, key: str) -> tuple[str, list[dict[str, str]]]:
    """The name and the rows of the file that the button of a list makes."""
    name, text = saved(browser, f"#list-{key} button[aria-label$='CSV']")
    return name, [*csv.DictReader(text.lstrip("\ufeff").splitlines(keepends=True))]
