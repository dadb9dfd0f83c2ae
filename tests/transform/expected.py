"""The final tables, from what the portal knows and without any SQL."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from e2e.stores import columns_of
from e2e.truth import FIELDS

from transform.columns import JSON_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from public_jobs_sandbox.postings import Job
    from transform.portal import Listing
    from transform.warehouses import Builds

Row = dict[str, Any]
DAY = timedelta(days=1)
# Columns that only the builds know.
UNKNOWN = {"version", "recorded_at"}

SALARY = ("has_salary", "salary_low", "salary_middle", "salary_high")
"""Columns of pay that need no more than the summary."""

NUMBERS = columns_of("number", "integer")
JSON_TYPES = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def days(length: timedelta) -> float:
    return round(length / DAY, 1)


def stored(value: object) -> object:
    """Numbers are doubles, other scalars are text, and empty text is null."""
    if isinstance(value, bool):
        return as_text(value)
    if isinstance(value, int | float):
        return float(value)
    return None if value == "" else value


def as_text(value: Any) -> str | None:
    """A value in old_value or new_value; JSON in a form that can be compared."""
    if isinstance(value, list | dict):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, bool):
        return str(value).lower()
    return None if value in (None, "") else str(value)


def additional(job: Job) -> dict[str, Any]:
    return {field: value for field, value in job.items() if field not in FIELDS["job_details"]}


def values(job: Job, fields: Iterable[str]) -> Row:
    """The columns of these fields."""
    return {FIELDS["job_details"][field]: stored(job[field]) for field in fields}


def derived(job: Job) -> Row:
    """Pay that compares, and the place, which no file of locations says."""
    period = job.get("salaryPeriod")
    ends = [float(job[name]) for name in ("minSalary", "maxSalary") if job[name]]
    amounts = dict.fromkeys(("low", "middle", "high"))
    if ends:
        amounts = {"low": min(ends), "middle": statistics.mean(ends), "high": max(ends)}
    in_a_year = {"year": 1, "month": 12, "hour": 2080}.get(str(period))
    return (
        {"salary_period": period, "has_salary": bool(ends)}
        | {f"salary_{name}": amount for name, amount in amounts.items()}
        | {
            f"annual_{name}": amount and in_a_year and amount * in_a_year
            for name, amount in amounts.items()
        }
        | dict.fromkeys(("city", "country", "is_remote"))
    )


@dataclass
class Period:
    """One period of publication, and the job as it was last seen in it."""

    job: Job
    number: int
    opened_after: datetime | None
    opened_by: datetime
    closed_after: datetime | None = None
    closed_by: datetime | None = None


class History:
    """What happened, as a row of listings.

    Args:
        listings: All of them, the last one built.
        schema: The schema of the organisation.
        last_day: The latest day that any organisation was listed on, if not the last of these.
    """

    def __init__(
        self,
        listings: list[Listing],
        schema: str = "public_jobs",
        last_day: date | None = None,
    ) -> None:
        self._listings = listings
        self._builds = [listing for listing in listings if listing.built]
        self._latest = listings[-1]
        self._schema = schema
        self._last_day = last_day or listings[-1].time.date()
        self.periods = self._periods()

    def rows(self, table: str) -> list[Row]:
        rows: list[Row] = getattr(self, table)()
        return [{"organisation": self._schema} | row for row in rows]

    def _key(self, job: Job) -> Row:
        return {
            "job_key": f"{self._schema}/{job['id']}",
            "id": job["id"],
            "public_id": job["publicId"],
        }

    def _periods(self) -> list[Period]:
        found: list[Period] = []
        is_open: dict[str, Period] = {}
        numbers: Counter[str] = Counter()
        before: Listing | None = None
        for listing in self._listings:
            for key in is_open.keys() - listing.jobs.keys():
                period = is_open.pop(key)
                assert before
                period.closed_after, period.closed_by = before.time, listing.time
            for key, job in listing.jobs.items():
                if key in is_open:
                    is_open[key].job = job
                    continue
                numbers[key] += 1
                after = before.time if before else None
                is_open[key] = Period(job, numbers[key], after, listing.time)
                found.append(is_open[key])
            before = listing
        return found

    def publication_periods(self) -> list[Row]:
        latest = self._latest.time
        return [
            self._key(it.job)
            | {
                "period": it.number,
                "job_title": stored(it.job["jobTitle"]),
                "department": stored(it.job["department"]),
                "location": stored(it.job["location"]),
                "seniority_level": stored(it.job["seniorityLevel"]),
                "type": stored(it.job["type"]),
                "is_open": it.closed_by is None,
                "opened_after": it.opened_after,
                "opened_by": it.opened_by,
                "closed_after": it.closed_after,
                "closed_by": it.closed_by,
                "days_open_at_least": days((it.closed_after or latest) - it.opened_by),
                "days_open_at_most": it.opened_after
                and days((it.closed_by or latest) - it.opened_after),
            }
            for it in self.periods
        ]

    def open_jobs(self) -> list[Row]:
        rows = []
        for period in self.periods:
            if period.closed_by:
                continue
            job, latest = period.job, self._latest.time
            rows.append(
                values(job, FIELDS["job_details"])
                | self._key(job)
                | derived(job)
                | {
                    "additional_fields": additional(job),
                    "opened_after": period.opened_after,
                    "first_seen_at": period.opened_by,
                    "last_seen_at": latest,
                    "was_open_before": period.opened_after is None,
                    "days_open": days(latest - period.opened_by),
                }
            )
        return rows

    def jobs_ever(self) -> list[Row]:
        fields = (*FIELDS["jobs"], "yearsExperience", "primaryLanguage", "educationLevel")
        rows = []
        for key in {it.job["id"] for it in self.periods}:
            periods = [it for it in self.periods if it.job["id"] == key]
            first, last = periods[0], periods[-1]
            ends = ((it.closed_after or self._latest.time) - it.opened_by for it in periods)
            rows.append(
                values(last.job, fields)
                | self._key(last.job)
                | derived(last.job)
                | {
                    "is_open": last.closed_by is None,
                    "periods": len(periods),
                    "first_opened_after": first.opened_after,
                    "first_opened_by": first.opened_by,
                    "closed_after": last.closed_after,
                    "closed_by": last.closed_by,
                    "days_open": round(sum(map(days, ends)), 1),
                    "reposted_from": self._reposted_from(first),
                }
            )
        return rows

    def _reposted_from(self, first: Period) -> str | None:
        earlier = [
            it
            for it in self.periods
            if it.closed_by
            and it.job["id"] != first.job["id"]
            and all(it.job[name] == first.job[name] for name in ("jobTitle", "location"))
            and timedelta(0) <= first.opened_by - it.closed_by <= 30 * DAY
        ]
        return earlier[-1].job["id"] if earlier and first.opened_after else None

    def job_versions(self) -> list[Row]:
        """A job that the build before did not see has a new version when it is back."""
        versions: defaultdict[str, list[Row]] = defaultdict(list)
        before: Listing | None = None
        for build in self._builds:
            for key, job in build.jobs.items():
                of_job = versions[key]
                pay = derived(job)
                row = values(job, FIELDS["jobs"]) | self._key(job) | {"additional_fields": None}
                row |= {name: pay[name] for name in SALARY}
                is_new = not of_job or not before or key not in before.jobs
                if is_new or not row.items() <= of_job[-1].items():
                    start = build.time if of_job else datetime.min  # noqa: DTZ901
                    if of_job:
                        of_job[-1]["in_force_until"] = start
                    end = datetime(9999, 12, 31)  # noqa: DTZ001
                    of_job.append(row | {"in_force_from": start, "in_force_until": end})
            before = build
        return [row for of_job in versions.values() for row in of_job]

    def time_to_close(self) -> list[Row]:
        """Job by job, those that closed before those that were open for as long."""
        groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for period in self.publication_periods():
            if period["opened_after"]:
                groups["overall", "all"].append(period)
                for name in ("department", "location", "seniority_level", "type"):
                    groups[name, period[name] or "not given"].append(period)
        rows = []
        for (dimension, value), periods in groups.items():
            ends = sorted(
                ((it["days_open_at_least"] + it["days_open_at_most"]) / 2, it["is_open"])
                for it in periods
            )
            share, median = Fraction(1), None
            for number, (days_open, is_open) in enumerate(ends):
                share *= 1 if is_open else 1 - Fraction(1, len(ends) - number)
                median = days_open if median is None and share <= Fraction(1, 2) else median
            rows.append(
                {
                    "dimension": dimension,
                    "value": value,
                    "at_risk": len(ends),
                    "closed": sum(not is_open for _, is_open in ends),
                    "median_days": median,
                    "longest_days": ends[-1][0],
                }
            )
        return rows

    def job_changes(self) -> list[Row]:
        rows: list[Row] = []
        known: dict[str, Job] = {}
        before: Listing | None = None
        for build in self._builds:
            for key, job in build.jobs.items():
                if key in known:
                    assert before
                    after = self._last_seen(key, before.time, build.time)
                    rows += self._changes(known[key], job, after, build.time)
                known[key] = job
            before = build
        return rows

    def _last_seen(self, key: str, before: datetime, now: datetime) -> datetime | None:
        """The build before, or the end of the period before if the job has opened since then."""
        periods = [it for it in self.periods if it.job["id"] == key and it.opened_by <= now]
        return periods[-2].closed_after if periods[-1].opened_by > before else before

    def _changes(
        self, old: Job, new: Job, after: datetime | None, changed_by: datetime
    ) -> list[Row]:
        def changed(name: str, values: tuple[Any, Any], changed_after: datetime | None) -> Row:
            numbers, pay = name in NUMBERS, name in {"min_salary", "max_salary"}
            return self._key(new) | {
                "job_title": new["jobTitle"],
                "field": name,
                "old_value": as_text(values[0]),
                "new_value": as_text(values[1]),
                "old_number": stored(values[0]) if numbers else None,
                "new_number": stored(values[1]) if numbers else None,
                "old_currency": old["currency"] if pay else None,
                "new_currency": new["currency"] if pay else None,
                "changed_after": changed_after,
                "changed_by": changed_by,
            }

        rows = [
            changed(column, (old[field], new[field]), after if field in FIELDS["jobs"] else None)
            for field, column in FIELDS["job_details"].items()
            if old[field] != new[field]
        ]
        others = additional(old), additional(new)
        return rows + [
            changed(
                f"additional_fields.{field}", (others[0].get(field), others[1].get(field)), None
            )
            for field in others[0].keys() | others[1].keys()
            if others[0].get(field) != others[1].get(field)
        ]

    def daily_open_jobs(self) -> list[Row]:
        names = ("department", "location", "seniorityLevel", "type")

        def places(listing: Listing) -> dict[str, tuple[str, ...]]:
            jobs = listing.jobs.items()
            return {key: tuple(job[name] or "not given" for name in names) for key, job in jobs}

        counts: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
        day, before = self._listings[0].time.date(), places(self._listings[0])
        while day <= self._last_day:
            for place in before.values():
                counts[day, place]["open_at_start"] += 1
            for listing in [it for it in self._listings if it.time.date() == day]:
                now = places(listing)
                for key in before.keys() | now.keys():
                    old, new = before.get(key), now.get(key)
                    if new != old:
                        counts[day, new]["moved_in" if old else "opened"] += bool(new)
                        counts[day, old]["moved_out" if new else "closed"] += bool(old)
                before = now
            for place in before.values():
                counts[day, place]["open_jobs"] += 1
            day += DAY
        flows = ("open_at_start", "opened", "closed", "moved_in", "moved_out", "open_jobs")
        return [
            {"day": day}
            | dict(zip(("department", "location", "seniority_level", "type"), place, strict=True))
            | {flow: count[flow] for flow in flows}
            | {"is_carried_forward": day > self._latest.time.date()}
            for (day, place), count in counts.items()
            if place
        ]

    def salary_ranges(self) -> list[Row]:
        groups = defaultdict(list)
        names = ("seniority_level", "currency", "salary_period")
        for job in self.open_jobs():
            if job["has_salary"]:
                groups[tuple(job[name] or "not given" for name in names)].append(job)
        return [
            {
                **dict(zip(names, group, strict=True)),
                "jobs": len(jobs),
                "lowest": min(job["salary_low"] for job in jobs),
                "median": statistics.median(job["salary_middle"] for job in jobs),
                "highest": max(job["salary_high"] for job in jobs),
            }
            for group, jobs in groups.items()
        ]

    def knockout_questions(self) -> list[Row]:
        return [
            self._key(job)
            | {
                "job_title": job["jobTitle"],
                "question_number": number,
                "question_id": question["id"],
                "question": question["question"],
                "type": question["type"],
                "answer_required": question["required"],
            }
            for job in self._latest.jobs.values()
            for number, question in enumerate(job["knockoutQuestions"] or (), 1)
            if isinstance(question, dict)
        ]

    def undeclared_fields(self) -> list[Row]:
        first: dict[str, datetime] = {}
        types: defaultdict[str, set[str]] = defaultdict(set)
        for build in self._builds:
            for job in build.jobs.values():
                for field, value in additional(job).items():
                    first.setdefault(field, build.time)
                    types[field].add(JSON_TYPES[type(value)])
        now = [additional(job) for job in self._latest.jobs.values()]
        filled = Counter(
            field for job in now for field, value in job.items() if value not in (None, "", [], {})
        )
        return [
            {
                "field": field,
                "types": ", ".join(sorted(types[field])),
                "filled_jobs": filled[field],
                "share_filled": round(filled[field] / len(now), 4),
                "first_seen_at": first[field],
                "is_sent": any(field in job for job in now),
            }
            for field in first
        ]

    def completeness(self) -> list[Row]:
        jobs = self._latest.jobs.values()
        unfilled = {"minSalary": (None, 0), "maxSalary": (None, 0)}
        filled = {
            column: sum(job[field] not in unfilled.get(field, (None, "", [])) for job in jobs)
            for field, column in FIELDS["job_details"].items()
            if field != "id"
        }
        return [
            {
                "field": column,
                "filled_jobs": number,
                "share_filled": round(number / len(jobs), 4),
            }
            for column, number in filled.items()
        ]

    def listings(self) -> list[Row]:
        times = [build.time for build in self._builds]
        return [
            {
                "listed_at": time,
                "previous_listed_at": previous,
                "days_since_previous": previous and days(time - previous),
                "is_latest": time == times[-1],
            }
            for previous, time in zip([None, *times], times, strict=False)
        ]


def assert_holds(warehouse: Builds, table: str, *histories: History) -> None:
    """Hold a final table against what happened in these organisations."""
    expected = [row for history in histories for row in history.rows(table)]
    assert comparable(warehouse.rows(f"analytics.{table}")) == comparable(expected)


def comparable(rows: list[Row]) -> list[Row]:
    """Rows in one order, with JSON in one form, without what only the builds know."""
    found = []
    for row in rows:
        values = {name: value for name, value in row.items() if name not in UNKNOWN}
        for name in (*JSON_TEXT, "old_value", "new_value"):
            if isinstance(values.get(name), str) and values[name][:1] in {"[", "{"}:
                values[name] = json.loads(values[name])
        for name in ("old_value", "new_value"):
            if name in values:
                values[name] = as_text(values[name])
        found.append(values)
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True, default=str))
