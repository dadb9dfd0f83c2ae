"""The final tables, from what the portal knows and without any SQL."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from e2e.stores import columns_of
from e2e.truth import FIELDS

from transform.columns import JSON_TEXT

if TYPE_CHECKING:
    from public_jobs_sandbox.postings import Job
    from transform.portal import Listing

Row = dict[str, Any]
DAY = timedelta(days=1)
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
        self.periods = list(self._periods())

    def _key(self, job: Job) -> Row:
        return {
            "organisation": self._schema,
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
            values = {
                column: value if column in JSON_TEXT else stored(value)
                for column, value in (
                    (column, job[field]) for field, column in FIELDS["job_details"].items()
                )
            }
            rows.append(
                self._key(job)
                | values
                | {
                    "salary_period": job.get("salaryPeriod"),
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
        of_details = ("yearsExperience", "primaryLanguage", "educationLevel")
        rows = []
        for key in {it.job["id"] for it in self.periods}:
            periods = [it for it in self.periods if it.job["id"] == key]
            first, last = periods[0], periods[-1]
            ends = ((it.closed_after or self._latest.time) - it.opened_by for it in periods)
            rows.append(
                {
                    column: stored(last.job[field])
                    for field, column in FIELDS["job_details"].items()
                    if field in FIELDS["jobs"] or field in of_details
                }
                | self._key(last.job)
                | {
                    "is_open": last.closed_by is None,
                    "periods": len(periods),
                    "first_opened_after": first.opened_after,
                    "first_opened_by": first.opened_by,
                    "closed_after": last.closed_after,
                    "closed_by": last.closed_by,
                    "days_open": round(sum(map(days, ends)), 1),
                }
            )
        return rows

    def job_versions(self) -> list[Row]:
        """A job that the build before did not see has a new version when it is back."""
        versions: defaultdict[str, list[Row]] = defaultdict(list)
        before: Listing | None = None
        for build in self._builds:
            for key, job in build.jobs.items():
                of_job = versions[key]
                values = {
                    column: stored(job[field])
                    for field, column in FIELDS["job_details"].items()
                    if field in FIELDS["jobs"]
                }
                row = values | self._key(job) | {"additional_fields": None}
                is_new = not of_job or not before or key not in before.jobs
                if is_new or not row.items() <= of_job[-1].items():
                    start = build.time if of_job else datetime.min  # noqa: DTZ901
                    if of_job:
                        of_job[-1]["in_force_until"] = start
                    end = datetime(9999, 12, 31)  # noqa: DTZ001
                    of_job.append(row | {"in_force_from": start, "in_force_until": end})
            before = build
        return [row for of_job in versions.values() for row in of_job]

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
        counts: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)

        def place(time: datetime, job: Job) -> tuple[Any, ...]:
            names = (job[name] or "not given" for name in ("department", "location"))
            return time.date(), *names

        day = self._listings[0].time.date()
        while day <= self._last_day:
            shown = [it for it in self._listings if it.time.date() <= day][-1]
            at = datetime.combine(day, shown.time.time())
            for job in shown.jobs.values():
                counts[place(at, job)]["open_jobs"] += 1
            day += DAY
        before: Listing | None = None
        for listing in self._listings:
            if before:
                for key in listing.jobs.keys() - before.jobs.keys():
                    counts[place(listing.time, listing.jobs[key])]["opened"] += 1
                for key in before.jobs.keys() - listing.jobs.keys():
                    counts[place(listing.time, before.jobs[key])]["closed"] += 1
            before = listing
        return [
            {
                "organisation": self._schema,
                "day": day,
                "department": department,
                "location": location,
                "open_jobs": count["open_jobs"],
                "opened": count["opened"],
                "closed": count["closed"],
                "is_carried_forward": day > self._latest.time.date(),
            }
            for (day, department, location), count in counts.items()
        ]

    def salary_ranges(self) -> list[Row]:
        groups = defaultdict(list)
        for job in self._latest.jobs.values():
            names = (job["seniorityLevel"], job["currency"], job.get("salaryPeriod"))
            low, high = job["minSalary"], job["maxSalary"]
            if low or high:
                group = tuple(name or "not given" for name in names)
                groups[group].append((min(low or high, high or low), max(low or high, high or low)))
        return [
            {
                "organisation": self._schema,
                "seniority_level": seniority,
                "currency": currency,
                "salary_period": period,
                "jobs": len(ranges),
                "lowest": float(min(low for low, _ in ranges)),
                "median": float(statistics.median((low + high) / 2 for low, high in ranges)),
                "highest": float(max(high for _, high in ranges)),
            }
            for (seniority, currency, period), ranges in groups.items()
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
                "organisation": self._schema,
                "field": field,
                "types": ", ".join(sorted(types[field])),
                "filled_jobs": filled[field],
                "share_filled": round(filled[field] / len(now), 4),
                "first_seen_at": first[field],
                "is_sent": any(field in job for job in now),
            }
            for field in first
        ]
