"""Posts what opened, closed and was repriced to people, once a day or a week, and never twice.

Until which listing it is posted is noted before it goes out, beside the state of the runs: a run
that is killed in between loses one digest, and none is posted twice. Days and weeks are those of
the latest listing, in the time zone of the tables, so no clock is read.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import yaml

from public_jobs_pipeline import alerts, env, meltano, warehouse
from public_jobs_pipeline.project import Flaw, Project
from public_jobs_pipeline.tables import Row, RunQuery, literal, quoted, rows

URL = "DIGEST_URL"
DAYS = {"day": 1, "week": 7}
# What a digest has, in this order.
EVENTS = ("opened", "reopened", "closed", "repriced")
TABLES = ("nights", "job_events", "jobs_ever", "fields")
# Lines for each of them.
AT_MOST = 20
Times = dict[str, datetime]
"""A time of each organisation."""


class Digest(NamedTuple):
    """What happened after some listings.

    Attributes:
        since: The last listings before; what they showed is not in it.
        until: The latest listings.
        events: Rows of job_events, each with the address of its job.
        fields: Rows of the table `fields`.
    """

    since: Times
    until: Times
    events: list[Row]
    fields: list[Row]

    def counts(self) -> str:
        """Return how much there is; empty if there is nothing."""
        found = {name: sum(it["event"] == name for it in self.events) for name in EVENTS}
        found["new fields" if len(self.fields) > 1 else "new field"] = len(self.fields)
        return ", ".join(f"{count:,} {name}" for name, count in found.items() if count)


def post(project: Project) -> str:
    """Post what is new since the last digest, if it is time for one.

    Returns:
        Why it was not posted; empty if it was, or if it is not time.
    """
    if project.digest not in DAYS or not env.setting(URL):
        return ""
    try:
        return post_if_due(project)
    except Flaw as flaw:
        why = str(flaw)
    except Exception as error:  # noqa: BLE001  # a sync that worked must not fail by this
        why = type(error).__name__  # its text may have a secret
    return f"No digest was posted: {why}"


def post_if_due(project: Project) -> str:
    """Note the latest listings if a day or a week is over, and post what is new.

    Returns:
        Why the channel did not get it; empty if it did.
    """
    service, flaw = alerts.service_at(URL)
    if flaw:
        return f"No digest was posted: {flaw}"
    zone = time_zone()
    noted = read_note(project)
    with warehouse.opened(project, TABLES) as (run, schema):
        listed = listings(run, schema)
        until = {organisation: times[-1] for organisation, times in listed.items()}
        if not is_due(project.digest, zone, noted, until):
            return ""
        days = DAYS[project.digest]
        # Whatever the first listing showed is not new.
        since = {
            organisation: max(times[0], noted.get(organisation) or a_period_before(times, days))
            for organisation, times in listed.items()
        }
        found = read(run, schema, since, until)
    title, text = f"{Path.cwd().name}: {found.counts()}", text_of(found, zone)
    write_note(project, until)
    if not found.counts() or service.notify(text, title=title, body_format="text"):
        return ""
    write_note(project, noted)
    return (
        "No digest was posted, and the next run tries again: the address in "
        f"{URL} was not reached, or refused it."
    )


def time_zone() -> ZoneInfo:
    """Return the time zone of days, as dbt's variable has it."""
    variables: dict[str, Any] = {}
    with suppress(OSError, yaml.YAMLError, AttributeError):
        text = Path("transform/dbt_project.yml").read_text("utf-8")
        variables = yaml.safe_load(text).get("vars") or {}
        variables |= variables.get("public_jobs") or {}
    return ZoneInfo(variables.get("time_zone", "UTC"))


def is_due(every: str, zone: ZoneInfo, noted: Times, until: Times) -> bool:
    """Return whether the latest listing is on another day, or in another week, than the noted."""
    if not until:
        return False
    latest = beginning(every, local(max(until.values()), zone).date())
    return not noted or beginning(every, local(max(noted.values()), zone).date()) < latest


def beginning(every: str, day: date) -> date:
    """Return the first day of the week of a day, or the day."""
    return day - timedelta(days=day.weekday()) if every == "week" else day


def local(time: datetime, zone: ZoneInfo) -> datetime:
    """Return the time there of a time of the tables, which is UTC."""
    return time.replace(tzinfo=UTC).astimezone(zone)


def state_id(project: Project) -> str:
    """Return under which name Meltano keeps the note, also where no folder stays."""
    return f"{project.state_id}:digest"


def read_note(project: Project) -> Times:
    """Return the latest listing of each organisation that a digest has had."""
    state = json.loads(meltano.get_state(state_id(project)) or "{}")
    found = state.get("singer_state", {}).get("digest", {})
    return {organisation: datetime.fromisoformat(it) for organisation, it in found.items()}


def write_note(project: Project, times: Times) -> None:
    """Note the latest listings that a digest has had."""
    digest = {organisation: it.isoformat() for organisation, it in times.items()}
    meltano.set_state(state_id(project), {"digest": digest})


def listings(run: RunQuery, schema: str) -> dict[str, list[datetime]]:
    """Return the time of the last listing of each day, by organisation and in order."""
    found: dict[str, list[datetime]] = {}
    sql = "select organisation, last_listed_at as time from {}.nights where listings > 0"
    for it in rows(run, f"{sql.format(quoted(schema))} order by organisation, time"):
        found.setdefault(it["organisation"], []).append(it["time"])
    return found


def a_period_before(times: list[datetime], days: int) -> datetime:
    """Return the listing nearest to some days before the latest one, at which a digest begins."""
    start = times[-1] - timedelta(days=days)
    return min(times[:-1] or times, key=lambda it: abs(it - start))


def read(run: RunQuery, schema: str, since: Times, until: Times) -> Digest:
    """Read what happened after some listings and by others."""
    start = f"timestamp {literal(str(min(since.values())))}"
    names = ", ".join(map(literal, EVENTS))
    events = rows(
        run,
        "select events.organisation, events.happened_by as time, events.event, "  # noqa: S608
        "coalesce(events.job_title, events.public_id) as title, "
        "events.department, events.location, events.in_words, "
        "case when jobs.is_open then jobs.job_url end as url "
        f"from {quoted(schema)}.job_events as events "
        f"join {quoted(schema)}.jobs_ever as jobs on events.job_key = jobs.job_key "
        f"where events.event in ({names}) and events.happened_by > {start} "
        "order by events.organisation, title, events.job_key, events.happened_by",
    )
    fields = rows(
        run,
        "select organisation, first_seen_at as time, field, types "  # noqa: S608
        f"from {quoted(schema)}.fields where not has_column and first_seen_at > {start} "
        "order by organisation, field",
    )

    def are_new(found: list[Row]) -> list[Row]:
        of = (it for it in found if it["organisation"] in until)
        return [
            it for it in of if since[it["organisation"]] < it["time"] <= until[it["organisation"]]
        ]

    return Digest(since, until, are_new(events), are_new(fields))


def text_of(found: Digest, zone: ZoneInfo) -> str:
    """Return the digest: first how much there is, then what, of each kind."""
    first, last = (
        f"{local(time, zone):%Y-%m-%d %H:%M}"
        for time in (min(found.since.values()), max(found.until.values()))
    )
    name = len(found.until) > 1
    parts = [f"{found.counts()}, from {first} to {last} ({zone.key})."]
    for event in EVENTS:
        lines = [line(it, name=name) for it in found.events if it["event"] == event]
        parts += section(event.capitalize(), lines)
    fields = [
        f"{short(it['field'])} ({it['types']}){of(it) if name else ''}" for it in found.fields
    ]
    parts += section("New fields without a column", fields)
    return "\n\n".join(parts)


def section(title: str, lines: Sequence[str]) -> Iterable[str]:
    """Return one kind of events: the first lines, and how many others there are."""
    shown = [f"- {it}" for it in lines[:AT_MOST]]
    if len(lines) > AT_MOST:
        shown.append(f"- and {len(lines) - AT_MOST:,} more")
    return ["\n".join([f"{title} ({len(lines):,})", *shown])] if lines else []


def line(event: Row, *, name: bool) -> str:
    """Return an event in one line; `name` says whether it names the organisation."""
    job = ", ".join(short(event[it]) for it in ("title", "department", "location") if event[it])
    words = f": {short(event['in_words'])}" if event["in_words"] else ""
    url = f" {event['url']}" if event["url"] else ""
    return f"{job}{of(event) if name else ''}{words}{url}"


def of(row: Row) -> str:
    """Return the organisation of a row."""
    return f" ({short(row['organisation'])})"


def short(text: str) -> str:
    """Return a text in one line of a channel."""
    return " ".join(text.split())[:120]
