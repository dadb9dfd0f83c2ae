"""The final tables without dbt: from what the portal knows, or with the rows that a test wants."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

import yaml
from e2e.scenario import FIELDS
from e2e.stores import Row, columns_of
from public_jobs_sandbox.postings import Job
from support.portal import Builds, Listing

from dev.columns import JSON_TEXT, MARTS

Tables = dict[str, list[Row]]
KEY: Row = {"organisation": "acme", "job_key": "acme/1", "id": "1"}
DAY = timedelta(days=1)
NUMBERS = columns_of("number", "integer")
DIMENSIONS = ("department", "location", "seniority_level", "type")
# Columns that only the builds know, and two that unit tests in dbt prove.
UNKNOWN = {"version", "recorded_at", "updated_at", "reposted_from", "department_median_days"}


def days(length: timedelta) -> float:
    return round(length / DAY, 1)


def monday(day: date) -> date:
    return day - day.weekday() * DAY


def stored(value: object) -> object:
    """Numbers are doubles, and empty text is null."""
    if isinstance(value, int | float):
        return float(value)
    return None if value == "" else value


def as_text(value: Any) -> str | None:
    """A value in old_value or new_value."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | dict | bool):
        return json.dumps(value)
    return None if value in (None, "") else str(value)


def by_field(row: Row) -> Row:
    """What job_changes compares."""
    others = {f"additional_fields.{name}": it for name, it in row["additional_fields"].items()}
    return {column: row[column] for column in FIELDS["job_details"].values()} | others


class History:
    """What happened, as a row of listings.

    A method for each table returns its rows, which may have more columns than the table.

    Args:
        listings: All of them, the last one built.
        schema: The schema of the organisation.
        days: The first day on which all organisations had been listed, and the latest on which
            any was, if there are others.
    """

    def __init__(
        self,
        listings: list[Listing],
        schema: str = "public_jobs",
        days: tuple[date, date] | None = None,
    ) -> None:
        self._listings = listings
        self._latest = listings[-1]
        self._schema = schema
        ends = listings[0].time.date(), listings[-1].time.date()
        self._all_listed_on, self._last_day = days or ends

    def rows(self, table: str) -> list[Row]:
        """The rows of a table, with the columns that are described and not UNKNOWN."""
        names = [it["name"] for it in MODELS[table]["columns"] if it["name"] not in UNKNOWN]
        return [{name: row[name] for name in names} for row in getattr(self, table)()]

    def _job(self, job: Job) -> Row:
        """Every column that says what a job is."""
        ends = sorted(float(job[name]) for name in ("minSalary", "maxSalary") if job[name])
        low, middle, high = (ends[0], statistics.mean(ends), ends[-1]) if ends else (None,) * 3
        period = job.get("salaryPeriod")
        in_a_year = {"year": 1, "month": 12, "hour": 2080}.get(str(period))
        row = {column: stored(job[field]) for field, column in FIELDS["job_details"].items()}
        for name, amount in {"low": low, "middle": middle, "high": high}.items():
            row[f"salary_{name}"] = amount
            row[f"annual_{name}"] = amount and in_a_year and amount * in_a_year
        return row | {
            "organisation": self._schema,
            "job_key": f"{self._schema}/{job['id']}",
            "salary_period": period,
            "has_salary": bool(ends),
            **dict.fromkeys(("city", "country", "is_remote")),  # no file of locations says them
            "additional_fields": {k: v for k, v in job.items() if k not in FIELDS["job_details"]},
        }

    def publication_periods(self) -> list[Row]:
        found: list[Row] = []
        is_open: dict[str, Row] = {}
        before = None
        for listing in self._listings:
            for key in is_open.keys() - listing.jobs.keys():
                is_open.pop(key).update(closed_after=before, closed_by=listing.time)
            for key, job in listing.jobs.items():
                if key not in is_open:
                    earlier = [it["closed_by"] for it in found if it["id"] == key]
                    after = listing.remembered or before
                    is_open[key] = {
                        "period": len(earlier) + 1,
                        "opened_after": after and max([after, *earlier]),
                        "opened_by": listing.time,
                        "closed_after": None,
                        "closed_by": None,
                    }
                    found.append(is_open[key])
                is_open[key].update(self._job(job))
            before = listing.time
        for row in found:
            first, last = row["opened_after"], row["closed_by"] or before
            row["is_open"] = row["closed_by"] is None
            row["days_open_at_least"] = days((row["closed_after"] or before) - row["opened_by"])
            row["days_open_at_most"] = first and days(last - first)
        return found

    def open_jobs(self) -> list[Row]:
        changed = {row["id"]: row["in_force_from"] for row in self.job_versions()}
        never = datetime.min  # noqa: DTZ901
        return [
            row
            | {
                "last_seen_at": self._latest.time,
                "last_changed_by": None if changed[row["id"]] == never else changed[row["id"]],
                "was_open_before": row["opened_after"] is None,
                "days_open": row["days_open_at_least"],
            }
            for row in self.publication_periods()
            if row["is_open"]
        ]

    def jobs_ever(self) -> list[Row]:
        jobs: dict[str, Row] = {}
        for row in self.publication_periods():
            before = jobs.get(row["id"], row | {"days_open": 0})
            first = {name: before[name] for name in ("opened_after", "opened_by")}
            length = round(before["days_open"] + row["days_open_at_least"], 1)
            jobs[row["id"]] = row | first | {"periods": row["period"], "days_open": length}
        return list(jobs.values())

    def job_versions(self) -> list[Row]:
        """One that returns unchanged is the same version."""
        versions: defaultdict[str, list[Row]] = defaultdict(list)
        before = None
        for build in (it for it in self._listings if it.built):
            for key, job in build.jobs.items():
                row, of_job, start = self._job(job), versions[key], datetime.min  # noqa: DTZ901
                if of_job:
                    if row.items() <= of_job[-1].items():
                        continue
                    of_job[-1]["in_force_until"] = start = build.time
                end = datetime(9999, 12, 31)  # noqa: DTZ001
                times = {"in_force_from": start, "in_force_until": end, "built_before": before}
                of_job.append(row | times)
            before = build.time
        return [row for of_job in versions.values() for row in of_job]

    def job_changes(self) -> list[Row]:
        rows = []
        for old, new in pairwise(self.job_versions()):
            before, now = by_field(old), by_field(new)
            for field in before.keys() | now.keys() if old["id"] == new["id"] else ():
                values = before.get(field), now.get(field)
                if values[0] == values[1]:
                    continue
                is_number, is_pay = field in NUMBERS, field in {"min_salary", "max_salary"}
                of_list = field in FIELDS["jobs"].values()
                row = {
                    "field": field,
                    "changed_after": self._last_seen(new) if of_list else None,
                    "changed_by": new["in_force_from"],
                }
                for name, version, value in zip(("old", "new"), (old, new), values, strict=True):
                    row[f"{name}_value"] = as_text(value)
                    row[f"{name}_number"] = value if is_number else None
                    row[f"{name}_currency"] = version["currency"] if is_pay else None
                rows.append(new | row)
        return rows

    def _last_seen(self, new: Row) -> Any:
        """The build before, or the end of the period before if the job has opened since then."""
        periods = [it for it in self.publication_periods() if it["id"] == new["id"]]
        *others, last = (it for it in periods if it["opened_by"] <= new["in_force_from"])
        is_back = last["opened_by"] > new["built_before"]
        return others[-1]["closed_after"] if is_back else new["built_before"]

    def _groups(self, listing: Listing) -> dict[str, tuple[str, ...]]:
        rows = map(self._job, listing.jobs.values())
        return {row["id"]: tuple(row[it] or "not given" for it in DIMENSIONS) for row in rows}

    def daily_open_jobs(self) -> list[Row]:
        flows = ("open_at_start", "opened", "closed", "moved_in", "moved_out", "open_jobs")
        counts: dict[str, Counter[Any]] = {flow: Counter() for flow in flows}
        day, before = self._listings[0].time.date(), self._groups(self._listings[0])
        while day <= self._last_day:
            counts["open_at_start"].update((day, group) for group in before.values())
            for listing in [it for it in self._listings if it.time.date() == day]:
                now = self._groups(listing)
                for key in before.keys() | now.keys():
                    old, new = before.get(key), now.get(key)
                    if new and new != old:
                        counts["moved_in" if old else "opened"][day, new] += 1
                    if old and new != old:
                        counts["moved_out" if new else "closed"][day, old] += 1
                before = now
            counts["open_jobs"].update((day, group) for group in before.values())
            day += DAY
        return [
            {flow: count[day, group] for flow, count in counts.items()}
            | dict(zip(DIMENSIONS, group, strict=True))
            | {
                "organisation": self._schema,
                "day": day,
                "is_carried_forward": day > self._latest.time.date(),
                "has_all_organisations": day >= self._all_listed_on,
            }
            for day, group in set().union(*counts.values())
        ]

    def weekly_open_jobs(self) -> list[Row]:
        rows: list[Row] = []
        periods, versions = self.publication_periods(), self.job_versions()
        week = monday(self._listings[0].time.date())
        while week <= self._last_day:
            end = datetime.combine(week + 7 * DAY, time.min)
            for period in periods:
                if period["opened_by"] >= end or (period["closed_by"] or datetime.max) < end:  # noqa: DTZ901
                    continue
                (version,) = (
                    it
                    for it in versions
                    if it["id"] == period["id"]
                    and it["in_force_from"] < end <= it["in_force_until"]
                )
                names = ("opened_after", "opened_by", "public_id")
                rows.append(version | {name: period[name] for name in names})
                rows[-1] |= {
                    "week": week,
                    "days_open": days(min(end, self._latest.time) - period["opened_by"]),
                    "is_carried_forward": self._latest.time.date() < week,
                    "has_all_organisations": end.date() > self._all_listed_on,
                }
            week += 7 * DAY
        return rows

    def dates(self) -> list[Row]:
        years = (it.time.year for it in (self._listings[0], self._latest))
        first, end = (date(year + last, 1, 1) for last, year in enumerate(years))
        return [
            {
                "day": day,
                "week": monday(day),
                "month": day.replace(day=1),
                "quarter": day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
                "year": day.year,
            }
            for day in (first + number * DAY for number in range((end - first).days))
        ]

    def field_values(self) -> list[Row]:
        """An element of a list is a value."""
        rows = []
        for row in map(self._job, self._latest.jobs.values()):
            for field, found in row["additional_fields"].items():
                values = found if isinstance(found, list) else [found]
                for number, value in enumerate(map(as_text, values), 1):
                    if value is not None:
                        rows.append(row | {"field": field, "value_number": number, "value": value})
        return rows

    def completeness(self) -> list[Row]:
        rows = [self._job(job) for job in self._latest.jobs.values()]
        found = []
        for column in set(FIELDS["job_details"].values()) - {"id"}:
            empty: list[Any] = [None, [], 0] if "salary" in column else [None, []]
            number = sum(row[column] not in empty for row in rows)
            row = {"organisation": self._schema, "field": column, "filled_jobs": number}
            found.append(row | {"share_filled": round(number / len(rows), 4)})
        return found


def assert_holds(warehouse: Builds, table: str, *histories: History) -> None:
    """Hold a final table against what happened in these organisations."""
    if table == "dates":  # it belongs to no organisation
        histories = histories[:1]
    expected = [row for history in histories for row in history.rows(table)]
    assert comparable(warehouse.rows(f"analytics.{table}")) == comparable(expected)


def comparable(rows: list[Row]) -> list[Row]:
    """Rows in one order, with JSON in one form, without what only the builds know."""
    found = []
    for row in rows:
        values = {name: value for name, value in row.items() if name not in UNKNOWN}
        for name in (*JSON_TEXT, "old_value", "new_value", "value"):
            if isinstance(values.get(name), str) and values[name][:1] in {"[", "{"}:
                values[name] = json.loads(values[name])
        found.append(values)
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True, default=str))


# Every final table; unit tests in dbt prove those that `History` does not.
MODELS = {
    it["name"].removeprefix("public_jobs__"): it
    for it in yaml.safe_load(MARTS.read_text("utf-8"))["models"]
}
TABLES = [name for name in MODELS if hasattr(History, name)]


def make(execute: Callable[[str], Any], tables: Tables, schema: str = "analytics") -> None:
    """Make all final tables as the dbt project describes them; those not given are empty."""
    execute(f"create schema {schema}")
    for name, model in MODELS.items():
        types = {it["name"]: it["data_type"] for it in model["columns"]}
        make_table(execute, f"{schema}.{name}", types, tables.get(name, []))


def make_table(
    execute: Callable[[str], Any], table: str, types: dict[str, str], rows: list[Row]
) -> None:
    """Make a table of these columns; what a row lacks is null."""
    columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
    execute(f"create table {table} ({columns})")
    for row in rows:
        given = [name for name in types if row.get(name) is not None]
        values = ", ".join("'" + str(row[name]).replace("'", "''") + "'" for name in given)
        execute(f"insert into {table} ({', '.join(given)}) values ({values})")  # noqa: S608
