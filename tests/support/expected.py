"""The final tables without dbt: from what the portal knows, or with the rows that a test wants."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any
from unicodedata import normalize
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
SHORT = (
    "job_title", *DIMENSIONS, "years_experience", "primary_language", "education_level"
)  # fmt: skip
SENT_PAY = ("min_salary", "max_salary", "currency", "salary_period")
# Columns that only the builds know.
UNKNOWN = {"recorded_at", "updated_at", "detail_recorded_at"}
# What shows nothing at the ends of a text.
BLANKS = "".join(it for it in map(chr, range(0x3001)) if it.isspace() and not "\x1b" < it < " ")
BLANKS += "\N{ZERO WIDTH SPACE}\N{WORD JOINER}\N{ZERO WIDTH NO-BREAK SPACE}"
LONG = 500
"""Characters beyond which the histories alone keep a value."""
NEVER = datetime(9999, 12, 31)  # noqa: DTZ001
ALWAYS = datetime.min  # noqa: DTZ901


def days(length: timedelta) -> float:
    return round(length / DAY, 1)


def monday(day: date) -> date:
    return day - day.weekday() * DAY


def first_of_month(day: date) -> date:
    return day.replace(day=1)


def first_of_quarter(day: date) -> date:
    return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)


def stored(value: object) -> object:
    """Numbers are doubles; text has no blanks at its ends, and is null if nothing is left."""
    if isinstance(value, int | float):
        return float(value)
    return (normalize("NFC", value).strip(BLANKS) or None) if isinstance(value, str) else value


def composed(fields: Row) -> Row:
    """The same with letters and their accents as one character."""
    text = json.dumps(fields, ensure_ascii=False)
    return dict(json.loads(normalize("NFC", text)))


def as_text(value: Any) -> str | None:
    """A value in old_value or new_value."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | dict | bool):
        return json.dumps(value)
    return None if value is None else str(stored(str(value)) or "") or None


def in_days(number: float) -> str:
    """A number of days in words."""
    return f"{number:g} day{'s' * (number != 1)}"


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


def named(row: Row) -> Row:
    """What an event says of its job, as it was then."""
    names = ("organisation", "job_key", "id", "public_id", "job_title", *DIMENSIONS)
    return {name: row[name] for name in (*names, "currency", "version")}


def in_words(event: Row) -> str | None:
    """What an event says beside its job."""
    kind, old, new = event["event"], event.get("old_value"), event.get("new_value")
    values = f"{old or 'none'} → {new or 'none'}"
    match kind:
        case "found":
            words: str | None = "open before anybody looked"
        case "reopened":
            words = f"back after {in_days(event['days_away'])}"
        case "closed":
            least = "at least " * event["was_open_before"]
            words = f"open for {least}{in_days(event['days_open_at_least'])}"
        case "repriced":
            percent = event["change_percent"]
            sign = "+" * ((percent or 0) > 0)
            change = "" if percent is None else f" ({sign}{percent:g} %)"
            words = f"{old or 'no pay'} → {new or 'no pay'}{change}"
        case "moved" | "edited":
            is_json = any((it or "")[:1] + (it or "")[-1:] in {"[]", "{}"} for it in (old, new))
            words = event["field"] if event["is_long"] or is_json else f"{event['field']}: {values}"
        case "question reworded":
            words = values
        case _:
            is_question = kind.startswith("question")
            words = new or "a question without a text" if is_question else None
    return words


def json_type(value: Any) -> str:
    """The type of a value in the words of JSON."""
    kinds = {bool: "boolean", str: "string", list: "array", dict: "object", type(None): "null"}
    return kinds.get(type(value), "number")


OF_PAY_EVENT = ("salary_low", "salary_high", "annual_middle")
WHEN = ("old", "new")
OF_EDIT = (
    "event", "field", "old_value", "new_value", "old_currency", "annual_change", "is_comparable",
    "change_percent", "is_rename",
)  # fmt: skip
OF_SPELL = (
    "id", "public_id", "spell_key", "period", "version", "was_open_before", "opened_after",
    "opened_on", "open_since", "shown_from",
)  # fmt: skip
MODELS_PAY = (
    *SENT_PAY, "has_salary", "salary_low", "salary_middle", "salary_high", "annual_low",
    "annual_middle", "annual_high", "pay",
)  # fmt: skip


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
        self._first_day = self._day(listings[0])
        self._all_listed_on, self._last_day = days or (self._first_day, self._day(listings[-1]))
        self._shown = self._as_built()
        self._versions = self._as_versions()
        self._periods = self._as_periods()
        self._spells = self._as_spells()

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
        row |= {
            "public_id": job["publicId"],  # an id is no text
            "organisation": self._schema,
            "job_key": f"{self._schema}/{job['id']}",
            "salary_period": period,
            # Of a job that no build saw, nothing is known.
            "has_salary": bool(ends) if "jobTitle" in job else None,
            **dict.fromkeys(("city", "country", "is_remote")),  # no file of locations says them
            "additional_fields": composed(
                {k: v for k, v in job.items() if k not in FIELDS["job_details"]}
            ),
        }
        return row | {"pay": pay_as_text(row)}

    def _as_versions(self) -> dict[str, list[Row]]:
        """Those of each job. One that returns unchanged is the same version."""
        versions: defaultdict[str, list[Row]] = defaultdict(list)
        for build in (it for it in self._listings if it.built):
            for key, job in build.jobs.items():
                row, of_job, start = self._job(job), versions[key], ALWAYS
                if of_job:
                    if row.items() <= of_job[-1].items():
                        continue
                    of_job[-1]["in_force_until"] = start = build.time
                number = len(of_job) + 1
                names = {"version": number, "version_key": f"{row['job_key']} {number}"}
                of_job.append(row | names | {"in_force_from": start, "in_force_until": NEVER})
        return versions

    def _as_periods(self) -> list[Row]:
        """When each job was published, without what it was."""
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
                    number, job_key = len(earlier) + 1, f"{self._schema}/{key}"
                    is_open[key] = {
                        "organisation": self._schema,
                        "job_key": job_key,
                        "id": key,
                        "period": number,
                        "period_key": f"{job_key} {number}",
                        "opened_after": after and max([after, *earlier]),
                        "shown_from": listing.time,
                        "closed_after": None,
                        "closed_by": None,
                        "built_by": None,
                    }
                    found.append(is_open[key])
                if listing.built and not is_open[key]["built_by"]:
                    is_open[key]["built_by"] = listing.time
                is_open[key]["public_id"] = job["publicId"]
            before = listing.time
        for row in found:
            after, last = row["opened_after"], row["closed_after"] or before
            row["was_open_before"] = after is None
            row["is_open"] = row["closed_by"] is None
            row["open_since"] = self._local_day(row["shown_from"])
            row["opened_on"] = after and row["open_since"]
            row["closed_on"] = row["closed_by"] and self._local_day(row["closed_by"])
            row["surely_open_from"], row["surely_open_until"] = row["shown_from"], last
            row["maybe_open_from"] = after or ALWAYS
            row["maybe_open_until"] = row["closed_by"] or NEVER
            row["days_open_at_least"] = days(last - row["shown_from"])
            row["days_open_at_most"] = after and days((row["closed_by"] or before) - after)
        return found

    def _as_spells(self) -> list[Row]:
        """Each period, cut where what the builds saw of the job changed."""
        rows: list[Row] = []
        for period in self._periods:
            end = period["closed_by"] or NEVER
            known_by = period["built_by"] or period["shown_from"]
            seen = [
                it
                for it in self._versions.get(period["id"], ())
                if known_by < it["in_force_until"] and end > it["in_force_from"]
            ]
            # Of a period that no build saw, nothing is known but its dates.
            unseen = dict.fromkeys((*SHORT, *MODELS_PAY, "version", "city", "country", "is_remote"))
            unseen |= {"in_force_from": period["shown_from"], "in_force_until": NEVER}
            unseen |= {"additional_fields": {}, "knockout_questions": None}
            of_period: list[Row] = []
            for version in seen or [unseen]:
                start, until = version["in_force_from"], min(version["in_force_until"], end)
                start = start if start > known_by else period["shown_from"]
                number = 1 + sum(it["id"] == period["id"] for it in rows) + len(of_period)
                of_period.append(
                    version
                    | {
                        **period,
                        "version": version["version"],
                        "public_id": version.get("public_id") or period["public_id"],
                        "spell": number,
                        "spell_key": f"{period['job_key']} {number}",
                        "from_at": start,
                        "until_at": until,
                        "from_day": self._local_day(start),
                        "until_day": self._local_day(until),
                        "is_now": until == NEVER,
                    }
                )
            back = "reopened" if period["period"] > 1 else "opened"
            of_period[0]["began_as"] = back if period["opened_after"] else "found"
            of_period[-1]["ended_as"] = "open" if period["is_open"] else "closed"
            for old, new in pairwise(of_period):
                kind = "edited"
                if any(changed(old, new, it) for it in SENT_PAY):
                    kind = "repriced"
                if any(changed(old, new, it) for it in DIMENSIONS):
                    kind = "moved"
                old["ended_as"] = new["began_as"] = kind
            rows += of_period
        return rows

    def job_versions(self) -> list[Row]:
        return [row for of_job in self._versions.values() for row in of_job]

    def job_spells(self) -> list[Row]:
        return self._spells

    def job_periods(self) -> list[Row]:
        """With what the job was at the end."""
        last = {(it["id"], it["period"]): it for it in self._spells}
        return [last[it["id"], it["period"]] | it for it in self._periods]

    def jobs_ever(self) -> list[Row]:
        changes = {it["id"]: it["changed_by"] for it in self._field_changes()}
        medians = {
            it["value"]: it["median_days"]
            for it in self.time_to_close()
            if it["dimension"] == "department"
        }
        rows = []
        of_job = itemgetter("id")
        for key, found in groupby(sorted(self.job_periods(), key=of_job), key=of_job):
            periods = list(found)
            first, last = periods[0], periods[-1]
            # Of a job that no build saw, nothing is known.
            row = last | (self._versions[key][-1] if self._versions.get(key) else {})
            names = ("opened_after", "opened_on", "shown_from")
            row |= {f"first_{name}": first[name] for name in names}
            length = sum(it["days_open_at_least"] for it in periods)
            row |= dict.fromkeys({"job_url", "apply_url"} - row.keys())
            row["public_id"] = last["public_id"]  # a build may not have seen the latest one
            rows.append(
                row
                | {
                    "days_open_in_all": round(length, 1),
                    "last_seen_at": last["surely_open_until"],
                    "last_changed_by": changes.get(key),
                    "department_median_days": medians.get(row["department"] or "not given"),
                    **self._repost(first),
                }
            )
        return rows

    def _repost(self, first: Row) -> Row:
        """Which other job closed in the thirty days before, and was then what this one was."""
        start = first["shown_from"]
        versions = self._versions.get(first["id"], [])
        then = next((it for it in versions if start < it["in_force_until"]), None)
        found = [
            it
            for it in self.job_periods()
            if first["opened_on"]
            and then
            and it["id"] != first["id"]
            and it["closed_by"]
            and start - 30 * DAY <= it["closed_by"] <= start
            and then["job_title"]
            and all(it[name] == then[name] for name in ("job_title", "location"))
        ]
        nearest = min(found, key=lambda it: (start - it["closed_by"], it["id"]), default=None)
        return {
            "reposted_from": nearest and nearest["id"],
            "reposted_after": nearest and nearest["closed_by"],
        }

    def open_jobs(self) -> list[Row]:
        return [row for row in self.jobs_ever() if row["is_open"]]

    def open_jobs_by_day(self) -> list[Row]:
        """From what each day's last listing showed, and not from spells."""
        rows: list[Row] = []
        for row in self.dates():
            day = row["day"]
            if not row["is_observed"] or day < self._first_day:
                continue
            end = min(row["end_at"], self._latest.time)
            number = max(n for n, it in enumerate(self._listings) if self._day(it) <= day)
            for key, job in self._shown[number].items():
                (spell,) = (
                    it
                    for it in self._spells
                    if it["id"] == key and it["from_day"] <= day < it["until_day"]
                )
                opened_after = spell["opened_after"]
                rows.append(
                    row
                    | self._job(job)
                    | {name: spell[name] for name in OF_SPELL}
                    | {
                        "days_open_at_least": days(end - spell["shown_from"]),
                        "days_open_at_most": opened_after and days(end - opened_after),
                        "is_carried_forward": self._day(self._latest) < day,
                        "has_all_organisations": day >= self._all_listed_on,
                    }
                )
        return rows

    def _field_changes(self) -> list[Row]:
        rows = []
        for old, new in pairwise(self.job_versions()):
            before, now = by_field(old), by_field(new)
            for field in before.keys() | now.keys() if old["id"] == new["id"] else ():
                values = before.get(field), now.get(field)
                if values[0] == values[1]:
                    continue
                of_list = field in FIELDS["jobs"].values()
                row = {
                    "field": field,
                    "changed_after": self._last_seen(new) if of_list else None,
                    "changed_by": new["in_force_from"],
                }
                for name, value in zip(("old_value", "new_value"), values, strict=True):
                    row[name] = as_text(value)
                rows.append(new | row)
        return rows

    def _last_seen(self, new: Row) -> datetime:
        """The last build before that saw the job published."""
        times = [it.time for it in self._listings if it.built and new["id"] in it.jobs]
        return max(it for it in times if it < new["in_force_from"])

    def _question_changes(self) -> list[Row]:
        """A question is paired by its id and text, or else by its id, or else by its text."""
        rows = []
        for it in self._field_changes():
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
            numbers: Counter[str] = Counter()
            for row in sorted(found, key=lambda row: (row["id"] or "~", row["question"] or "~")):
                change = row["change"]
                numbers[change] += 1
                values = {"old_value": row.get("old_question"), "new_value": row["question"]}
                name = {"event": f"question {change}", "name": numbers[change]}
                rows.append(it | name | values)
        return rows

    def _pay_changes(self) -> list[Row]:
        rows = []
        for old, new in pairwise(self.job_versions()):
            columns = ("salary_low", "salary_high", "currency", "salary_period")
            if old["id"] != new["id"] or all(old[it] == new[it] for it in columns):
                continue
            if not (old["has_salary"] or new["has_salary"]):
                continue
            ends = ("min_salary", "max_salary")
            is_listed = any(old[it] != new[it] for it in (*ends, "currency"))
            row: Row = {
                "event": "repriced",
                "changed_after": self._last_seen(new) if is_listed else None,
                "changed_by": new["in_force_from"],
                "old_value": old["pay"],
                "new_value": new["pay"],
                "old_currency": old["currency"],
            }
            for column in OF_PAY_EVENT:
                row |= {f"old_{column}": old[column], f"new_{column}": new[column]}
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
            if old["currency"] == new["currency"] is not None:
                row["annual_change"] = (new["annual_middle"] or 0) - (old["annual_middle"] or 0)
            rows.append(new | row)
        return rows

    def _openings_and_closings(self) -> Iterator[Row]:
        closed: dict[str, datetime] = {}
        for it in self._spells:
            was_open = {"was_open_before": it["was_open_before"]}
            times = ("happened_after", "happened_by", "happened_on")
            if (event := it["began_as"]) in {"found", "opened", "reopened"}:
                dates = (it["opened_after"], it["shown_from"], it["open_since"])
                row = {"event": event, "nth": it["period"], "step": 1} | was_open
                row |= {f"new_{name}": it[name] for name in OF_PAY_EVENT}
                row["annual_change"] = it["annual_middle"]
                if event == "reopened":
                    row["days_away"] = days(it["shown_from"] - closed[it["id"]])
                yield named(it) | row | dict(zip(times, dates, strict=True))
            if it["ended_as"] == "closed":
                dates = (it["closed_after"], it["closed_by"], it["closed_on"])
                row = {"event": "closed", "nth": it["period"], "step": -1} | was_open
                row |= {f"old_{name}": it[name] for name in OF_PAY_EVENT}
                row |= {"old_currency": it["currency"]}
                row["annual_change"] = it["annual_middle"] and -it["annual_middle"]
                row["days_open_at_least"] = it["days_open_at_least"]
                yield named(it) | row | dict(zip(times, dates, strict=True))
                closed[it["id"]] = it["closed_by"]

    def job_events(self) -> list[Row]:
        """Edits of pay are one event, with the pay before and after."""
        rows = list(self._openings_and_closings())
        changes = self._field_changes()
        of_pay = {"min_salary", "max_salary", "currency", "additional_fields.salaryPeriod"}
        edits = self._pay_changes()
        for it in changes:
            is_move = it["field"] in DIMENSIONS
            name = {"event": "moved" if is_move else "edited", "name": it["field"]}
            if is_move:
                name["is_rename"] = self._is_rename(it, changes)
            edits += [it | name] if it["field"] not in of_pay else []
        for it in edits + self._question_changes():
            nth = f"{it['version']} {it['name']}" if "name" in it else it["version"]
            names = {*OF_EDIT, *(f"{when}_{name}" for when in WHEN for name in OF_PAY_EVENT)}
            row = {name: value for name, value in it.items() if name in names}
            texts = (row["old_value"] or "", row["new_value"] or "")
            is_long = max(map(len, texts)) > LONG and not it["event"].startswith("question")
            row |= {"is_long": is_long, "nth": nth}
            if is_long:
                row |= {
                    name: text if 0 < len(text) <= LONG else None
                    for name, text in zip(("old_value", "new_value"), texts, strict=True)
                }
            times = {"happened_after": it["changed_after"], "happened_by": it["changed_by"]}
            times["happened_on"] = self._local_day(it["changed_by"])
            rows.append(named(it) | row | times)
        empty = dict.fromkeys(it["name"] for it in MODELS["job_events"]["columns"])
        return [empty | {"step": 0, "is_long": False} | self._event(row) for row in rows]

    def _event(self, row: Row) -> Row:
        """With its key, its likely day and what it says."""
        after, by = row["happened_after"], row["happened_by"]
        middle = after and after + timedelta(seconds=(by - after) // timedelta(seconds=2))
        is_known = middle and by - after <= timedelta(hours=36)
        return row | {
            "event_key": f"{row['job_key']} {row['event']} {row['nth']}",
            "likely_on": self._local_day(middle) if is_known else None,
            "in_words": in_words(row),
        }

    def _is_rename(self, move: Row, changes: list[Row]) -> bool:
        """Whether others made the same move, and none stayed."""
        names = ("field", "old_value", "new_value", "changed_by")
        same = [it for it in changes if all(it[name] == move[name] for name in names)]
        time = move["changed_by"]
        stayed = [
            it
            for it in self._spells
            if it[move["field"]] == move["old_value"] and it["from_at"] <= time < it["until_at"]
        ]
        return len(same) > 1 and not stayed and None not in {move["old_value"], move["new_value"]}

    def time_to_close(self) -> list[Row]:
        """The share that is open for longer is a product over the days on which some closed."""
        groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for it in (it for it in self.job_periods() if it["opened_on"]):
            values = {name: it[name] or "not given" for name in DIMENSIONS} | {"overall": "all"}
            values["has_salary"] = {True: "true", False: "false", None: "not given"}[
                it["has_salary"]
            ]
            values["quarter"] = str(first_of_quarter(it["opened_on"]))
            values["month"] = str(first_of_month(it["opened_on"]))
            for dimension, value in values.items():
                groups[dimension, value].append(it)
        rows = []
        for (dimension, value), periods in groups.items():
            ends = [
                ((it["days_open_at_least"] + it["days_open_at_most"]) / 2, not it["is_open"])
                for it in periods
            ]
            open_for_longer, median, curve = 1.0, None, []
            for length in sorted({length for length, _ in ends}):
                at_risk = sum(it >= length for it, _ in ends)
                closed = sum(it == length and is_over for it, is_over in ends)
                open_for_longer *= 1 - closed / at_risk
                if open_for_longer <= 1 / 2 and median is None:
                    median = length
                row = {"days": length, "at_risk": at_risk, "closed": closed}
                curve.append(row | {"still_open": round(open_for_longer, 6)})
            of_all = {
                "organisation": self._schema,
                "dimension": dimension,
                "value": value,
                "jobs": len(ends),
                "closed_jobs": sum(is_over for _, is_over in ends),
                "median_days": median,
                "longest_days": max(length for length, _ in ends),
            }
            rows += [row | of_all for row in curve]
        return rows

    def nights(self) -> list[Row]:
        """Nothing is missing in any of these listings."""
        bounds = ("opened_after", "shown_from", "closed_after", "closed_by")
        dated = {row[bound] for row in self._periods for bound in bounds}
        known = [it for it in self._listings if it.built or it.time in dated]
        all_built = [it.time for it in known if it.built]
        rows: list[Row] = []
        day = self._first_day
        while day <= self._last_day:
            of_day = [it for it in known if self._day(it) == day]
            built = [it.time for it in of_day if it.built]
            latest = max(it.time for it in known if self._day(it) <= day)
            place = all_built.index(built[-1]) if built else 0
            previous = all_built[place - 1] if place else None
            rows.append({
                "organisation": self._schema,
                "day": day,
                "outcome": "complete" if built else "not built" if of_day else "no data",
                "listings": len(of_day),
                "built_listings": len(built),
                "last_listed_at": latest,
                "missing_jobs": 0 if built else None,
                "missing_details": 0 if built else None,
                "missing_since": None,
                "built_listed_at": built[-1] if built else None,
                "previous_listed_at": previous,
                "days_since_previous": previous and days(built[-1] - previous),
                "is_latest": bool(built) and built[-1] == self._latest.time,
            })  # fmt: skip
            day += DAY
        return rows

    def dates(self) -> list[Row]:
        first, end = (date(year, 1, 1) for year in (self._first_day.year, self._last_day.year + 1))
        whole_from, last_day = self._all_listed_on, self._last_day
        rows = []
        for number in range((end - first).days):
            day = first + number * DAY
            week, month = monday(day), first_of_month(day)
            next_week, next_month = week + 7 * DAY, first_of_month(month + 31 * DAY)
            midnight = datetime.combine(day + DAY, time.min, self._zone)
            is_past = day < last_day
            rows.append({
                "day": day,
                "week": week,
                "month": month,
                "quarter": first_of_quarter(day),
                "year": day.year,
                "is_observed": self._first_day <= day <= last_day,
                "is_latest_day": day == last_day,
                "is_last_day_of_week": day == last_day or (is_past and day + DAY == next_week),
                "is_last_day_of_month": day == last_day or (is_past and day + DAY == next_month),
                "is_whole_week": week > whole_from and next_week <= last_day,
                "is_whole_month": month > whole_from and next_month <= last_day,
                "end_at": midnight.astimezone(UTC).replace(tzinfo=None),
            })  # fmt: skip
        return rows

    def field_value_spells(self) -> list[Row]:
        """An element of a list is a value, and so is a question."""
        rows = []
        for spell in self._spells:
            for field, found in spell["additional_fields"].items():
                values = found if isinstance(found, list) else [found]
                for number, value in enumerate(map(as_text, values), 1):
                    if value is not None:
                        row = {"field": field, "value_number": number, "value": value[:LONG]}
                        rows.append(spell | row | {"is_long": len(value) > LONG})
            found = spell["knockout_questions"]
            asked = json.loads(found) if isinstance(found, str) else found or []
            for number, it in enumerate(asked, 1):
                if isinstance(it, dict) and (stored(it.get("id")) or stored(it.get("question"))):
                    row = {"field": "knockout_questions", "value_number": number, "is_long": False}
                    row |= {
                        "value": stored(it.get("question")),
                        "question_id": stored(it.get("id")),
                    }
                    row |= {"question_type": stored(it.get("type"))}
                    rows.append(spell | row | {"answer_required": it.get("required")})
        for row in rows:
            row["value_key"] = f"{row['spell_key']} {row['field']} {row['value_number']}"
            for name in ("question_id", "question_type", "answer_required"):
                row.setdefault(name, None)
        return rows

    def field_values(self) -> list[Row]:
        return [row for row in self.field_value_spells() if row["is_now"]]

    def fields(self) -> list[Row]:
        jobs = [self._job(it) for it in self._latest.jobs.values()]
        found: list[Row] = []
        for column in set(FIELDS["job_details"].values()) - {"id"} if jobs else ():
            empty: list[Any] = [None, [], 0] if "salary" in column else [None, []]
            number = sum(row[column] not in empty for row in jobs)
            found.append({"field": column, "has_column": True, "is_sent": True})
            found[-1] |= {"types": None, "first_seen_at": None, "filled_jobs": number}
        kinds: defaultdict[str, set[str]] = defaultdict(set)
        first: dict[str, datetime] = {}
        for listing in (it for it in self._listings if it.built):
            for job in listing.jobs.values():
                for field, value in self._job(job)["additional_fields"].items():
                    kinds[field].add(json_type(value))
                    first.setdefault(field, listing.time)
        for field, types in kinds.items():
            values = [
                it["additional_fields"][field] for it in jobs if field in it["additional_fields"]
            ]
            texts = [
                [text for text in map(as_text, it if isinstance(it, list) else [it]) if text]
                for it in values
            ]
            found.append({"field": field, "has_column": False, "is_sent": bool(values)})
            found[-1] |= {"types": ", ".join(sorted(types)), "first_seen_at": first[field]}
            found[-1]["filled_jobs"] = sum(it not in ([], ["{}"]) for it in texts)
        share = {"organisation": self._schema}
        return [
            it | share | {"share_filled": round(it["filled_jobs"] / max(len(jobs), 1), 4)}
            for it in found
        ]


def assert_holds(warehouse: Builds, table: str, *histories: History) -> None:
    """Hold a final table against what happened in these organisations."""
    if table == "dates":  # it belongs to no organisation
        histories = histories[:1]
    expected = [row for history in histories for row in history.rows(table)]
    assert_same(warehouse.rows(f"analytics.{table}"), expected)


def assert_same(found: list[Row], expected: list[Row]) -> None:
    """Compare rows in any order. Of many, the first ones that differ say enough."""
    rows = [Counter(map(as_line, comparable(it))) for it in (found, expected)]
    unexpected, missing = rows[0] - rows[1], rows[1] - rows[0]
    assert ([*unexpected][:2], [*missing][:2]) == ([], [])


def as_line(row: Row) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def comparable(rows: list[Row]) -> list[Row]:
    """Rows with JSON in one form, without what only the builds know."""
    found = []
    for row in rows:
        values = {name: value for name, value in row.items() if name not in UNKNOWN}
        for name, value in values.items():
            may_be_json = name in {*JSON_TEXT, "old_value", "new_value", "value"}
            if may_be_json and isinstance(value, str) and value[:1] in {"[", "{"}:
                with suppress(ValueError):  # a title may begin so, too
                    values[name] = json.loads(value)
            elif isinstance(value, int | Decimal) and not isinstance(value, bool):
                values[name] = float(value)
        found.append(values)
    return found


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
