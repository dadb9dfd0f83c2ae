"""The queries on the tables for analysts that the pages have, and what some have to answer."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from e2e.stores import Row
from public_jobs_sandbox.postings import Job
from support.expected import History, monday, stored
from support.pages import EVERYWHERE, PAGES
from support.portal import ShownList

Answer = set[tuple[Any, ...]]

# One statement, and the rows of the table that follows.
QUERY = re.compile(r"^```sql\n([^;`]*);?\n```\n(?:\n((?:\|[^\n]*\n)+))?", re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Asked:
    """A query of a page.

    Attributes:
        page: Its name.
        heading: What it stands below.
        query: Its SQL.
        table: The table that follows it, if one does.
    """

    page: str
    heading: str
    query: str
    table: str

    def __str__(self) -> str:
        return f"{self.page}: {self.heading}"


def asked(page: str, text: str) -> list[Asked]:
    """The queries of a page on the tables for analysts."""
    return [
        Asked(page, HEADING.findall(text[: it.start()])[-1], it[1], it[2] or "")
        for it in QUERY.finditer(text)
        if "analytics." in it[1]
    ]


ON_PAGES = [it for path in EVERYWHERE for it in asked(path.name, path.read_text(encoding="utf-8"))]
QUESTIONS = [it for it in ON_PAGES if it.page == "questions.md"]
MONDAY = [it for it in QUESTIONS if it.table]
QUESTION = {it.heading: it.query for it in QUESTIONS}


@dataclass
class Former:
    """What a page says of a table that there was before.

    Attributes:
        queries: Those that have its rows.
        left_out: Columns of it that they don't have, or that mean something else now.
    """

    queries: list[str]
    left_out: set[str]


def former_tables() -> dict[str, Former]:
    """What the page of old names has, by their names."""
    found: dict[str, Former] = {}
    for section in PAGES["old-names"].split("\n### ")[1:]:
        name, _, text = section.partition("\n")
        (left_out,) = re.findall(r"^Left out: (.*)\.$", text, re.MULTILINE) or [""]
        queries = [it[1] for it in QUERY.finditer(text)]
        found[name.strip("`")] = Former(queries, set(re.findall("`(.*?)`", left_out)))
    # What has no section has all its columns still.
    (kept,) = re.findall(r"^(`.*) have all their columns still", PAGES["old-names"], re.MULTILINE)
    for name in re.findall("`(.*?)`", kept):
        found[name] = Former([f"select * from analytics.{name}"], {"updated_at"})  # noqa: S608
    return found


# Answers from what the list showed, and not from the tables.


class Shown:
    """What a test knows of the organisation.

    Attributes:
        listings: All complete ones, the last one built.
        now: The published jobs.
        by_day: Those of the last listing by the end of each day.
        events: What happened, as rows of the table.
    """

    def __init__(self, listings: list[ShownList]) -> None:
        self.listings = listings
        self.now = [*listings[-1].jobs.values()]
        self.events = History(listings).job_events()
        days = (listings[-1].time.date() - listings[0].time.date()).days + 1
        self.by_day: dict[date, list[Job]] = {}
        for number in range(days):
            day = listings[0].time.date() + timedelta(days=number)
            self.by_day[day] = [*self._by(datetime.combine(day, time.max)).jobs.values()]

    def _by(self, moment: datetime) -> ShownList:
        return [it for it in self.listings if it.time <= moment][-1]

    def whole_weeks(self) -> int:
        first, *_, last = self.by_day
        mondays = {monday(it) for it in self.by_day}
        return sum(first < it and it + timedelta(days=6) < last for it in mondays)

    def opened(self) -> list[Row]:
        return [it for it in self.events if it["event"] in {"opened", "reopened"}]

    def roles_by_department(self) -> Answer:
        groups = defaultdict(list)
        for job in self.now:
            groups[stored(job.get("department"))].append(stored(job.get("location")))
        return {(name, len(places), len(set(places) - {None})) for name, places in groups.items()}

    def of_a_day(self) -> Answer:
        jobs = self.by_day[date(2026, 11, 4)]
        return {
            tuple(stored(it.get(name)) for name in ("jobTitle", "department", "location"))
            for it in jobs
        }

    def each_day(self) -> Answer:
        return {(day, len(jobs)) for day, jobs in self.by_day.items()}

    def on_average(self) -> Answer:
        names = Counter(
            stored(job.get("department")) for jobs in self.by_day.values() for job in jobs
        )
        return {(name, number / len(self.by_day)) for name, number in names.items()}

    def at_a_moment(self) -> Answer:
        jobs = self._by(datetime(2026, 11, 4)).jobs.values()  # noqa: DTZ001  # as warehouses hold it
        return {(it["id"], stored(it.get("jobTitle"))) for it in jobs}

    def for_certain(self) -> Answer:
        moment = datetime(2026, 11, 3, 14)  # noqa: DTZ001
        before = self._by(moment)
        after = self.listings[self.listings.index(before) + 1]
        return {
            (key, stored(job.get("jobTitle")))
            for key, job in before.jobs.items()
            if key in after.jobs
        }

    def each_week(self) -> Answer:
        groups: defaultdict[tuple[date, str], list[str]] = defaultdict(list)
        for it in self.events:
            groups[monday(it["happened_on"]), it["department"]].append(it["event"])
        return {
            (*group, sum(it in {"opened", "reopened"} for it in of), of.count("closed"))
            for group, of in groups.items()
        }

    def an_average_week(self) -> Answer:
        first, *_, last = self.by_day
        of_weeks = [
            it["department"]
            for it in self.opened()
            if (start := monday(it["happened_on"])) > first and start + timedelta(days=6) < last
        ]
        return {(name, number / self.whole_weeks()) for name, number in Counter(of_weeks).items()}

    def weekdays(self) -> Answer:
        days = Counter(it["likely_on"] and it["likely_on"].isoweekday() for it in self.opened())
        return {*days.items()}

    def ends_of_months(self) -> Answer:
        ends = {day.replace(day=1): jobs for day, jobs in self.by_day.items()}
        return {
            (month, len(jobs), sum(bool(it.get("minSalary") or it.get("maxSalary")) for it in jobs))
            for month, jobs in ends.items()
        }

    def skills(self) -> Answer:
        return {*asked_for(self.now).items()}

    def skills_then(self) -> Answer:
        now, then = asked_for(self.now), asked_for(self.by_day[date(2026, 12, 7)])
        ever = {name for jobs in self.by_day.values() for name in asked_for(jobs)}
        return {(name, now[name], then[name]) for name in ever}

    def questions(self) -> Answer:
        texts = [
            {
                it.get("question")
                for it in job.get("knockoutQuestions") or []
                if isinstance(it, dict)
            }
            for job in self.now
        ]
        return {*Counter(it for of_job in texts for it in of_job).items()}

    def experienced(self) -> Answer:
        return {
            (stored(it.get("jobTitle")),)
            for it in self.now
            if (it.get("yearsExperience") or 0) > 5 or "design" in it["roleOverview"].lower()
        }


# A question, and the columns of its answer that are known. The number of rows is, too.
KNOWN: dict[str, Callable[[Shown], Answer]] = {
    "How many roles are open, by department?": Shown.roles_by_department,
    "Which jobs were open on a day?": Shown.of_a_day,
    "How many jobs were open on each day?": Shown.each_day,
    "How many jobs were open on average, by department?": Shown.on_average,
    "What did each job say at a moment?": Shown.at_a_moment,
    "Which jobs were online for certain at a moment?": Shown.for_certain,
    "How many jobs opened and closed in each week, by department?": Shown.each_week,
    "How many jobs open in an average week, by department?": Shown.an_average_week,
    "On which weekday do jobs go online?": Shown.weekdays,
    "How many jobs were open at the end of each month, and how many of them said what they pay?": (
        Shown.ends_of_months
    ),
    "Which skills are asked for most often?": Shown.skills,
    "Which skills are asked for more often than four weeks ago?": Shown.skills_then,
    "How often is each knockout question asked?": Shown.questions,
    "Which roles ask for more than five years of experience, or mention design?": Shown.experienced,
}


def asked_for(jobs: Iterable[Job]) -> Counter[str]:
    """By how many jobs each skill is."""
    return Counter(it for job in jobs for it in set(job.get("requiredSkills") or ()))
