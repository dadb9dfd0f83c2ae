"""The final tables without dbt: from what the portal knows, or with the rows that a test wants."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import yaml
from e2e.scenario import FIELDS
from e2e.stores import Row, columns_of
from public_jobs_sandbox.postings import Job
from support.portal import Builds, ShownList

from dev.columns import JSON_TEXT, MARTS

Tables = dict[str, list[Row]]
KEY: Row = {"organisation": "acme", "job_key": "acme/1", "id": "1"}
DAY = timedelta(days=1)
NUMBERS = columns_of("number", "integer")
DIMENSIONS = ("department", "location", "seniority_level", "type")
# Columns that only the builds know, and those that unit tests in dbt prove.
UNKNOWN = {
    *("version", "recorded_at", "updated_at", "spell"),
    *("reposted_from", "reposted_after", "department_median_days"),
}
OF_EVENT = {
    "opened": ("was_open_before",),
    "reopened": ("was_open_before", "days_away"),
    "closed": ("was_open_before", "days_open"),
    "repriced": ("old_value", "new_value", "change_percent"),
    "moved": ("field", "old_value", "new_value"),
    "edited": ("field", "old_value", "new_value"),
}
"""What an event has beside its time and its job."""
PAY = ("salary_low", "salary_high", "currency", "salary_period")
LONG = 500
"""Characters beyond which the histories alone keep a value."""
NEVER = datetime(9999, 12, 31)  # noqa: DTZ001


def days(length: timedelta) -> float:
    return round(length / DAY, 1)


def monday(day: date) -> date:
    return day - day.weekday() * DAY


def first_of_month(day: date) -> date:
    return day.replace(day=1)


def stored(value: object) -> object:
    """Numbers are doubles; text has no blanks at its ends, and is null if nothing is left."""
    if isinstance(value, int | float):
        return float(value)
    return (value.strip() or None) if isinstance(value, str) else value


def as_text(value: Any) -> str | None:
    """A value in old_value or new_value."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | dict | bool):
        return json.dumps(value)
    return None if value is None else str(value).strip() or None


def changed(old: Row, new: Row, column: str) -> bool:
    return bool(old[column] != new[column])


def questions(value: str | None) -> list[Row]:
    """What is a question in the JSON of a list."""
    found = [it for it in json.loads(value or "[]") if isinstance(it, dict)]
    rows = [
        {name: stored(it.get(name)) for name in ("id", "question")}
        | {"required": it.get("required")}
        for it in found
    ]
    return [row for row in rows if row["id"] or row["question"]]


def paired(old: list[Row], new: list[Row], *names: str) -> list[tuple[Row, Row]]:
    """Take those out that have the same values under these names."""
    pairs = []
    for before in [it for it in old if it[names[0]]]:
        after = next((it for it in new if all(it[name] == before[name] for name in names)), None)
        if after:
            old.remove(before)
            new.remove(after)
            pairs.append((before, after))
    return pairs


def pay_as_text(row: Row) -> str | None:
    """A pay in old_pay or new_pay."""
    if not row["has_salary"]:
        return None
    low, high = as_text(row["salary_low"]), as_text(row["salary_high"])
    amount = low if low == high else f"{low}\u2013{high}"
    end = None
    if not row["min_salary"]:
        end, amount = "up to", high
    elif not row["max_salary"]:
        end, amount = "from", low
    period = row["salary_period"] and f"per {row['salary_period']}"
    return " ".join(filter(None, (end, row["currency"], amount, period)))


def by_field(row: Row) -> Row:
    """What job_changes compares."""
    others = {
        f"additional_fields.{name}": stored(it) if isinstance(it, str) else it
        for name, it in row["additional_fields"].items()
    }
    return {column: row[column] for column in FIELDS["job_details"].values()} | others


class History:
    """What happened, as a row of listings.

    A method for each table returns its rows, which may have more columns than the table.

    Args:
        listings: All complete ones, the last one built.
        schema: The schema of the organisation.
        days: The first day on which all organisations had been listed, and the latest on which
            any was, if there are others.
        zone: Whose days, weeks and quarters count.
    """

    def __init__(
        self,
        listings: list[ShownList],
        schema: str = "public_jobs",
        days: tuple[date, date] | None = None,
        zone: str = "UTC",
    ) -> None:
        self._listings = listings
        self._latest = listings[-1]
        self._schema = schema
        self._zone = ZoneInfo(zone)
        ends = self._day(listings[0]), self._day(listings[-1])
        self._all_listed_on, self._last_day = days or ends
        self._shown = self._as_built()

    def _day(self, listing: ShownList) -> date:
        return self._local_day(listing.time)

    def _local_day(self, time: datetime) -> date:
        return (
            time.date() if time == NEVER else time.replace(tzinfo=UTC).astimezone(self._zone).date()
        )

    def _as_built(self) -> list[dict[str, Job]]:
        """The jobs of each listing as the tables can know them, from those that a build saw.

        That is as the build before in this period saw the job, or else the first one; or, if none
        did, as it was known before.
        """
        shown: list[dict[str, Job]] = [{} for _ in self._listings]
        for key in {key for listing in self._listings for key in listing.jobs}:
            built = [it.jobs[key] for it in self._listings if it.built and key in it.jobs]
            last = next(iter(built), None)
            numbers = enumerate(self._listings)
            for is_open, period in groupby(numbers, key=lambda it: key in it[1].jobs):
                if not is_open:
                    continue
                listings = list(period)
                now = next((it.jobs[key] for _, it in listings if it.built), last)
                for number, listing in listings:
                    now = listing.jobs[key] if listing.built else now
                    names = {name: listing.jobs[key][name] for name in ("id", "publicId")}
                    shown[number][key] = (now or {}) | names
                last = now
        return shown

    def rows(self, table: str) -> list[Row]:
        """The rows of a table, with the columns that are described and not UNKNOWN."""
        names = [it["name"] for it in MODELS[table]["columns"] if it["name"] not in UNKNOWN]
        return [{name: row[name] for name in names} for row in getattr(self, table)()]

    def _job(self, job: Job) -> Row:
        """Every column that says what a job is."""
        ends = sorted(float(job[name]) for name in ("minSalary", "maxSalary") if job.get(name))
        low, middle, high = (ends[0], statistics.mean(ends), ends[-1]) if ends else (None,) * 3
        period = job.get("salaryPeriod")
        in_a_year = {"year": 1, "month": 12, "hour": 2080}.get(str(period))
        row = {column: stored(job.get(field)) for field, column in FIELDS["job_details"].items()}
        for name, amount in {"low": low, "middle": middle, "high": high}.items():
            row[f"salary_{name}"] = amount
            row[f"annual_{name}"] = amount and in_a_year and amount * in_a_year
        return row | {
            "organisation": self._schema,
            "job_key": f"{self._schema}/{job['id']}",
            "salary_period": period,
            # Of a job that no build saw, nothing is known.
            "has_salary": bool(ends) if "jobTitle" in job else None,
            **dict.fromkeys(("city", "country", "is_remote")),  # no file of locations says them
            "additional_fields": {k: v for k, v in job.items() if k not in FIELDS["job_details"]},
        }

    def publication_periods(self) -> list[Row]:
        found: list[Row] = []
        is_open: dict[str, Row] = {}
        before = None
        for listing, shown in zip(self._listings, self._shown, strict=True):
            for key in is_open.keys() - shown.keys():
                is_open.pop(key).update(closed_after=before, closed_by=listing.time)
            for key, job in shown.items():
                if key not in is_open:
                    periods = [it for it in found if it["id"] == key]
                    earlier = [it["closed_by"] for it in periods]
                    builds = [
                        it.time for it in self._listings if it.built and it.time < listing.time
                    ]
                    if periods and builds[-1] < earlier[-1]:
                        # No build saw it closed, and its row was written over.
                        periods[-1]["closed_after"] = builds[-1]
                    after = listing.remembered or before
                    is_open[key] = {
                        "period": len(earlier) + 1,
                        "opened_after": after and max([after, *earlier]),
                        "opened_by": listing.time,
                        "closed_after": None,
                        "closed_by": None,
                        "built_by": None,
                    }
                    found.append(is_open[key])
                if listing.built and not is_open[key]["built_by"]:
                    is_open[key]["built_by"] = listing.time
                is_open[key].update(self._job(job))
            before = listing.time
        for row in found:
            first, last = row["opened_after"], row["closed_by"] or before
            row["was_open_before"] = first is None
            row["is_open"] = row["closed_by"] is None
            row["days_open_at_least"] = days((row["closed_after"] or before) - row["opened_by"])
            row["days_open_at_most"] = first and days(last - first)
        return found

    def open_jobs(self) -> list[Row]:
        changed = {row["id"]: row["changed_by"] for row in self.job_changes()}
        return [
            row
            | {
                "last_seen_at": self._latest.time,
                "last_changed_by": changed.get(row["id"]),
                "days_open": row["days_open_at_least"],
            }
            for row in self.publication_periods()
            if row["is_open"]
        ]

    def jobs_ever(self) -> list[Row]:
        jobs: dict[str, Row] = {}
        for row in self.publication_periods():
            before = jobs.get(row["id"], row | {"days_open": 0})
            names = ("opened_after", "opened_by", "was_open_before")
            first = {name: before[name] for name in names}
            length = round(before["days_open"] + row["days_open_at_least"], 1)
            # A job of which nothing is known has no pay here.
            summed = {"periods": row["period"], "days_open": length}
            jobs[row["id"]] = row | first | summed | {"has_salary": bool(row["has_salary"])}
        return list(jobs.values())

    def job_versions(self) -> list[Row]:
        """One that returns unchanged is the same version."""
        versions: defaultdict[str, list[Row]] = defaultdict(list)
        for build in (it for it in self._listings if it.built):
            for key, job in build.jobs.items():
                row, of_job, start = self._job(job), versions[key], datetime.min  # noqa: DTZ901
                if of_job:
                    if row.items() <= of_job[-1].items():
                        continue
                    of_job[-1]["in_force_until"] = start = build.time
                end = datetime(9999, 12, 31)  # noqa: DTZ001
                of_job.append(row | {"in_force_from": start, "in_force_until": end})
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
                texts = (row["old_value"] or "", row["new_value"] or "")
                row["is_long"] = max(map(len, texts)) > LONG
                rows.append(new | row)
        return rows

    def question_changes(self) -> list[Row]:
        """A question is paired by its id and text, or else by its id, or else by its text."""
        rows = []
        for it in self.job_changes():
            if it["field"] != "knockout_questions":
                continue
            old, new = questions(it["old_value"]), questions(it["new_value"])
            pairs = paired(old, new, "id", "question")
            pairs += paired(old, new, "id") + paired(old, new, "question")
            found: list[Row] = [before | {"change": "removed"} for before in old]
            found += [after | {"change": "added"} for after in new]
            for before, after in pairs:
                if changed(before, after, "question"):
                    reworded = {"change": "reworded", "old_question": before["question"]}
                    found.append(after | reworded)
                if bool(before["required"]) != bool(after["required"]):
                    change = "made required" if after["required"] else "made optional"
                    found.append(after | {"change": change})
            rows += [
                it
                | {"change": row["change"], "question": row["question"], "question_id": row["id"]}
                | {"old_question": row.get("old_question"), "answer_required": row["required"]}
                for row in found
            ]
        return rows

    def _last_seen(self, new: Row) -> datetime:
        """The last build before that saw the job published."""
        times = [it.time for it in self._listings if it.built and new["id"] in it.jobs]
        return max(it for it in times if it < new["in_force_from"])

    def pay_changes(self) -> list[Row]:
        rows = []
        for old, new in pairwise(self.job_versions()):
            if old["id"] != new["id"] or all(old[it] == new[it] for it in PAY):
                continue
            if not (old["has_salary"] or new["has_salary"]):
                continue
            row = {"changed_by": new["in_force_from"], "changed_after": None}
            ends = ("min_salary", "max_salary")
            if any(old[it] != new[it] for it in (*ends, "currency")):
                row["changed_after"] = self._last_seen(new)
            for name, version in {"old": old, "new": new}.items():
                row[f"{name}_pay"] = pay_as_text(version)
                for column in (*PAY, "salary_middle", "annual_low", "annual_middle", "annual_high"):
                    row[f"{name}_{column}"] = version[column]
            amount = ""
            if old["annual_middle"] and new["annual_middle"]:
                amount = "annual_middle"
            elif not changed(old, new, "salary_period") and old["has_salary"] and new["has_salary"]:
                amount = "salary_middle"
            row["is_comparable"] = bool(
                amount
                and old["currency"]
                and not changed(old, new, "currency")
                and all(bool(old[it]) == bool(new[it]) for it in ends)
                and 1 / 3 <= new[amount] / old[amount] <= 3
            )
            row["change_percent"] = (
                round(100 * new[amount] / old[amount] - 100, 1) if row["is_comparable"] else None
            )
            rows.append(new | row)
        return rows

    def job_events(self) -> list[Row]:
        """Edits of pay are one event, with the pay before and after."""
        empty = dict.fromkeys(it["name"] for it in MODELS["job_events"]["columns"])
        rows: list[Row] = []
        before: dict[str, Any] = {}
        for it in self.publication_periods():
            was_open = {"was_open_before": it["was_open_before"]}
            if it["opened_after"]:
                back = it["period"] > 1
                event: Row = {"event": "reopened" if back else "opened"} | was_open
                event["days_away"] = days(it["opened_by"] - before[it["id"]]) if back else None
                times = {"happened_after": it["opened_after"], "happened_by": it["opened_by"]}
                rows.append(it | event | times)
            if it["closed_by"]:
                times = {"happened_after": it["closed_after"], "happened_by": it["closed_by"]}
                length = {"days_open": it["days_open_at_least"]}
                rows.append(it | {"event": "closed"} | was_open | times | length)
            before[it["id"]] = it["closed_by"]
        for it in self.pay_changes():
            values = {"old_value": it["old_pay"], "new_value": it["new_pay"]}
            percent = {"change_percent": it["change_percent"]}
            rows.append(it | {"event": "repriced"} | values | percent)
        of_pay = {"min_salary", "max_salary", "currency", "additional_fields.salaryPeriod"}
        for it in self.job_changes():
            event = {"event": "moved" if it["field"] in DIMENSIONS else "edited"}
            rows += [it | event] if it["field"] not in of_pay else []
        last = {it["id"]: it for it in self.jobs_ever()}
        known = ("public_id", "job_title", "department", "location", "seniority_level", "type")
        for place, it in enumerate(rows):
            times = {
                "happened_after": it.get("happened_after", it.get("changed_after")),
                "happened_by": it.get("happened_by", it.get("changed_by")),
            }
            names = ("organisation", "job_key", "id")
            of_job = {name: last[it["id"]][name] for name in (*names, *known)}
            given = {name: it[name] for name in ("event", *OF_EVENT[it["event"]])}
            given["is_long"] = it.get("is_long", False)
            times["happened_on"] = self._local_day(times["happened_by"])
            rows[place] = empty | given | times | of_job
        return rows

    def job_spells(self) -> list[Row]:
        """Each period, cut where what the builds saw of the job changed."""
        names = ("job_title", *DIMENSIONS, "min_salary", "max_salary", *PAY[2:])
        versions: dict[str, list[Row]] = {}
        for version in self.job_versions():
            of_job = versions.setdefault(version["id"], [])
            if of_job and all(of_job[-1][it] == version[it] for it in names):
                of_job[-1] = of_job[-1] | {"in_force_until": version["in_force_until"]}
            else:
                of_job.append(version)
        rows = []
        for period in self.publication_periods():
            end = period["closed_by"] or NEVER
            known_by = period["built_by"] or period["opened_by"]
            seen = [
                it
                for it in versions.get(period["id"], ())
                if known_by < it["in_force_until"] and end > it["in_force_from"]
            ]
            # Of a period that no build saw, nothing is known but its dates.
            unseen = dict.fromkeys(it["name"] for it in MODELS["job_spells"]["columns"])
            unseen |= {name: period[name] for name in KEY}
            unseen |= {"in_force_from": period["opened_by"], "in_force_until": NEVER}
            for version in seen or [unseen]:
                start, until = version["in_force_from"], version["in_force_until"]
                start = start if start > known_by else period["opened_by"]
                begins = "reopened" if period["period"] > 1 else "opened"
                begins = begins if period["opened_after"] else "found"
                ends = "changed" if until < end else "closed" if period["closed_by"] else "open"
                rows.append(
                    version
                    | {
                        "public_id": period["public_id"],
                        "pay": pay_as_text(version),
                        "opened_on": self._local_day(period["opened_by"]),
                        "was_open_before": period["was_open_before"],
                        "from_day": self._local_day(start),
                        "until_day": self._local_day(min(until, end)),
                        "began_as": "changed" if start > period["opened_by"] else begins,
                        "ended_as": ends,
                    }
                )
        return rows

    def _groups(self, number: int) -> dict[str, tuple[str, ...]]:
        rows = map(self._job, self._shown[number].values())
        return {row["id"]: tuple(row[it] or "not given" for it in DIMENSIONS) for row in rows}

    def daily_open_jobs(self) -> list[Row]:
        flows = ("open_at_start", "opened", "closed", "moved_in", "moved_out", "open_jobs")
        counts: dict[str, Counter[Any]] = {flow: Counter() for flow in flows}
        day, before = self._day(self._listings[0]), self._groups(0)
        while day <= self._last_day:
            counts["open_at_start"].update((day, group) for group in before.values())
            for number in [n for n, it in enumerate(self._listings) if self._day(it) == day]:
                now = self._groups(number)
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
                "is_carried_forward": day > self._day(self._latest),
                "has_all_organisations": day >= self._all_listed_on,
            }
            for day, group in set().union(*counts.values())
        ]

    def weekly_open_jobs(self) -> list[Row]:
        return self._open_jobs_at_end_of("week", monday, lambda week: week + 7 * DAY)

    def monthly_open_jobs(self) -> list[Row]:
        return self._open_jobs_at_end_of(
            "month", first_of_month, lambda month: first_of_month(month + 31 * DAY)
        )

    def _open_jobs_at_end_of(
        self, part: str, begin: Callable[[date], date], after: Callable[[date], date]
    ) -> list[Row]:
        rows: list[Row] = []
        periods = self.publication_periods()
        day = begin(self._day(self._listings[0]))
        while day <= self._last_day:
            next_day = after(day)
            local_end = datetime.combine(next_day, time.min, self._zone)
            end = local_end.astimezone(UTC).replace(tzinfo=None)
            number = max(number for number, it in enumerate(self._listings) if it.time < end)
            time_of_it = self._listings[number].time
            for key, job in self._shown[number].items():
                (period,) = (
                    it
                    for it in periods
                    if it["id"] == key
                    and it["opened_by"] <= time_of_it
                    and (it["is_open"] or time_of_it < it["closed_by"])
                )
                opening = ("opened_after", "opened_by", "was_open_before")
                rows.append(self._job(job) | {it: period[it] for it in opening})
                rows[-1] |= {
                    part: day,
                    "days_open": days(min(end, self._latest.time) - period["opened_by"]),
                    "is_carried_forward": self._day(self._latest) < day,
                    "has_all_organisations": next_day > self._all_listed_on,
                }
            day = next_day
        return rows

    def nights(self) -> list[Row]:
        """Nothing is missing in any of these listings."""
        bounds = ("opened_after", "opened_by", "closed_after", "closed_by")
        dated = {row[bound] for row in self.publication_periods() for bound in bounds}
        known = [it for it in self._listings if it.built or it.time in dated]
        rows: list[Row] = []
        day = self._day(self._listings[0])
        while day <= self._last_day:
            of_day = [it for it in known if self._day(it) == day]
            built = sum(it.built for it in of_day)
            latest = max(it.time for it in known if self._day(it) <= day)
            rows.append({
                "organisation": self._schema,
                "day": day,
                "outcome": "complete" if built else "not built" if of_day else "no data",
                "listings": len(of_day),
                "built_listings": built,
                "last_listed_at": latest,
                "missing_jobs": 0 if built else None,
                "missing_details": 0 if built else None,
                "missing_since": None,
            })  # fmt: skip
            day += DAY
        return rows

    def dates(self) -> list[Row]:
        years = (self._day(it).year for it in (self._listings[0], self._latest))
        first, end = (date(year + last, 1, 1) for last, year in enumerate(years))
        return [
            {
                "day": day,
                "week": monday(day),
                "month": first_of_month(day),
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
