"""The digest: what it has, when it is due, and that nothing is in two of them."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest
from e2e.stores import Row
from public_jobs_pipeline import digest
from stand_ins import ProjectAtWork
from support.expected import Tables, make

SCHEMA = "acme_jobs_analytics"  # as the stand-in of the project says
NOTE = Path("states/prod:tap-public-jobs-to-target-duckdb:acme_jobs:digest")


def event(event: str, day: int, job: str = "Cook", **columns: Any) -> Row:
    return {
        "organisation": "acme",
        "job_key": f"acme/{job}",
        "event": event,
        "happened_by": f"2026-11-{day:02} 04:00",
        "job_title": job,
    } | columns


def night_of(time: str, organisation: str = "acme") -> Row:
    at = f"2026-11-{time}"
    return {"organisation": organisation, "listings": 1, "last_listed_at": at}


def listed(*days: int, organisation: str = "acme", hour: int = 4) -> list[Row]:
    return [night_of(f"{day:02} {hour:02}:00", organisation) for day in days]


JOBS: list[Row] = [
    {"job_key": "acme/Cook", "job_url": "https://acme.example/cook", "is_open": True},
    {"job_key": "acme/Clerk", "job_url": "https://acme.example/clerk", "is_open": False},
    {"job_key": "acme/Odd", "is_open": True},
    {"job_key": "globex/Cook", "is_open": True},
]
COUNTS = "3 opened, 1 reopened, 2 closed, 2 repriced, 1 new field"
PLACE: Row = {"department": "Kitchen", "location": "Bern"}


@pytest.fixture
def daily(project: ProjectAtWork) -> ProjectAtWork:
    """A project that posts each day."""
    project.answer(digest="day", schedule="cron")
    project.variables |= {"DIGEST_URL": "json://secret", "ALERT_URL": "", "PING_URL": ""}
    return project


def night(
    project: ProjectAtWork, listings: list[Row], events: list[Row], **tables: Any
) -> list[str]:
    """Run a schedule that loads and builds these tables; returns the lines that are posted."""
    rows: Tables = {"nights": listings, "job_events": events, "jobs_ever": JOBS} | tables
    Path("output/warehouse.duckdb").unlink()
    with duckdb.connect("output/warehouse.duckdb") as connection:
        connection.begin()  # one write instead of one for each table
        make(connection.execute, rows, SCHEMA)
        make(connection.execute, {}, f"{SCHEMA}2")  # of another project
        connection.commit()
    assert project.run("sync", "--scheduled", LOADS="done")[0] == 0
    assert len(project.heard) < 2
    return [line for it in project.heard for line in "\n".join(it).splitlines() if line]


def test_a_digest_counts_first_and_then_names_what_is_new(daily: ProjectAtWork) -> None:
    """Each event is one line of plain text, whatever a title has."""
    fields = [
        {"organisation": "acme", "field": "remotePolicy", "has_column": False, "first_seen_at": at}
        | {"types": "string"}
        for at in ("2026-11-01 04:00", "2026-11-03 04:00")
    ]
    fields[0]["field"] = "sentFromTheBeginning"
    events = [
        event("opened", 3, **PLACE, job_title="Cook, by night"),
        event("opened", 3, "Odd", job_title=" # *Chef*\r\n- _x_\t<!here>\u2028"),
        event("opened", 3, "Odd", job_title="x" * 200),
        event("opened", 2, "Two days ago"),
        event("closed", 3, "Clerk", in_words="open for at least 12.5 days"),
        event("closed", 3, in_words="open for 3 days"),
        event("reopened", 3, in_words="back after 1 day"),
        event("repriced", 3, in_words="EUR 50000 → EUR 55000 (+10 %)"),
        event("repriced", 3, "Odd", in_words="no pay → EUR 1"),
        event("edited", 3),
        event("moved", 3),
    ]

    assert night(daily, listed(1, 2, 3), events, fields=fields) == [
        f"acme: {COUNTS}",
        f"{COUNTS}, from 2026-11-02 04:00 to 2026-11-03 04:00 (UTC).",
        "Opened (3)",
        "- # *Chef* - _x_ <!here>",
        "- Cook, by night, Kitchen, Bern https://acme.example/cook",
        f"- {'x' * 120}",
        "Reopened (1)",
        "- Cook: back after 1 day https://acme.example/cook",
        "Closed (2)",
        "- Clerk: open for at least 12.5 days",
        "- Cook: open for 3 days https://acme.example/cook",
        "Repriced (2)",
        "- Cook: EUR 50000 → EUR 55000 (+10 %) https://acme.example/cook",
        "- Odd: no pay → EUR 1",
        "New fields without a column (1)",
        "- remotePolicy (string)",
    ]
    assert daily.body_format == "text"
    assert daily.address == "json://secret?overflow=split"


def test_a_long_digest_counts_the_rest(daily: ProjectAtWork) -> None:
    jobs = [{"job_key": f"acme/{number:02}", "is_open": True} for number in range(25)]
    events = [event("opened", 2, f"{number:02}") for number in range(25)]

    daily.variables["DIGEST_URL"] = "json://secret?tags=a"
    lines = night(daily, listed(1, 2), events, jobs_ever=jobs)

    assert daily.address == "json://secret?tags=a&overflow=split"
    assert lines[2:] == ["Opened (25)", *(f"- {it:02}" for it in range(20)), "- and 5 more"]


def test_no_event_is_in_two_digests_and_none_is_left_out(daily: ProjectAtWork) -> None:
    """Of the runs of a day, the first one posts; an organisation that was not listed is later."""
    events = [
        event("opened", 2),
        event("closed", 3),
        event("reopened", 4),
        event("opened", 3, organisation="globex", job_key="globex/Cook"),
    ]
    globex = listed(1, organisation="globex")

    def kinds(listings: list[Row]) -> list[str]:
        return [it for it in night(daily, listings, events) if it[0] != "-" and it[-1] == ")"]

    assert kinds(listed(1, 2) + globex) == ["Opened (1)"]
    assert kinds(listed(1, 2) + globex) == []
    evening = listed(2, hour=16)
    assert kinds(listed(1, 2) + evening + globex) == []
    assert kinds(listed(1, 2, 3) + globex) == ["Closed (1)"]
    assert json.loads(NOTE.read_text("utf-8")) == {
        "singer_state": {"digest": {"acme": "2026-11-03T04:00:00", "globex": "2026-11-01T04:00:00"}}
    }
    both = listed(1, 2, 3, 4) + globex + listed(3, organisation="globex")
    assert kinds(both) == ["Opened (1)", "Reopened (1)"]
    assert daily.heard[0][1].splitlines()[3] == "- Cook (globex)"
    # A day on which nothing happened has none, and is over.
    assert kinds(both + listed(5)) == []
    assert "2026-11-05" in NOTE.read_text("utf-8")


@pytest.mark.parametrize(
    ("times", "counts"),
    [
        # The second night began seconds later than the third one, or earlier.
        (["01 04:00", "02 04:00:05", "03 04:00"], "1 closed"),
        (["01 04:00", "02 03:59:55", "03 04:00"], "1 closed"),
        # Nobody has listed anything for days.
        (["01 04:00", "05 04:00"], "1 opened, 1 closed"),
        (["03 04:00"], ""),
    ],
)
def test_the_first_digest_begins_at_the_listing_nearest_to_a_day_before(
    daily: ProjectAtWork, times: list[str], counts: str
) -> None:
    """What the first listing of all showed is not new."""
    second = f"2026-11-{times[1] if len(times) > 2 else '02 04:00'}"
    events = [event("opened", 2) | {"happened_by": second}, event("closed", 3, "Clerk")]
    listings = [night_of(it) for it in times]

    assert night(daily, listings, events)[:1] == ([f"acme: {counts}"] if counts else [])


def test_a_channel_that_refuses_is_a_warning_and_gets_it_with_the_next_run(
    daily: ProjectAtWork,
) -> None:
    events = [event("opened", 2), event("closed", 3)]
    night(daily, listed(1), [])
    daily.refuses = True
    night(daily, listed(1, 2), events)
    warning = next(it for it in daily.output.splitlines() if it.startswith("Warning"))
    assert warning == (
        "Warning: No digest was posted, and the next run tries again: the address in DIGEST_URL "
        "was not reached, or refused it."
    )
    assert daily.output.endswith("readonly output/warehouse-copy.duckdb\n")
    daily.refuses = False

    assert night(daily, listed(1, 2, 3), events)[0] == "acme: 1 opened, 1 closed"
    assert night(daily, listed(1, 2, 3), events) == []


def test_a_run_that_is_killed_while_it_posts_does_not_post_twice(
    daily: ProjectAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whether the channel has it."""

    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> bool:
        raise Killed

    night(daily, listed(1), [])
    with monkeypatch.context() as patch:
        patch.setattr(__import__("apprise").Apprise, "notify", killed)
        with pytest.raises(Killed):
            night(daily, listed(1, 2), [event("opened", 2)])

    assert night(daily, listed(1, 2), [event("opened", 2)]) == []


@pytest.mark.parametrize(
    ("answers", "variables", "options"),
    [
        ({"digest": "none"}, {}, ["--scheduled"]),
        ({}, {"DIGEST_URL": ""}, ["--scheduled"]),
        ({}, {}, ["--if-news"]),
        ({}, {"LOADS": "refused refused"}, ["--scheduled"]),
    ],
    ids=["not asked for", "no channel", "a frequent run", "a failure"],
)
def test_no_digest_is_posted(
    daily: ProjectAtWork, answers: dict[str, str], variables: dict[str, str], options: list[str]
) -> None:
    daily.answer(**{"digest": "day"} | answers)
    daily.run("sync", *options, **{"LOADS": "done"} | variables)

    assert daily.heard == []
    assert "digest" not in daily.output
    assert not NOTE.exists()


@pytest.mark.parametrize(
    ("answers", "variables", "why"),
    [
        ({}, {}, "Cannot read the warehouse: IO Error: "),
        (
            {},
            {"FAILS": "state"},
            "The state prod:tap-public-jobs-to-target-duckdb:acme_jobs:digest",
        ),
        ({}, {"DIGEST_URL": "secret"}, "DIGEST_URL has none of these forms: "),
        (
            {"warehouse": "bigquery"},
            {},
            "Tables in Snowflake and BigQuery cannot be read from here.",
        ),
    ],
)
def test_what_stops_a_digest_fails_no_run(
    daily: ProjectAtWork, answers: dict[str, str], variables: dict[str, str], why: str
) -> None:
    daily.answer(**{"digest": "day"} | answers)

    status, _, _ = daily.run("sync", LOADS="done", **variables)

    assert status == 0
    warning = next(it for it in daily.output.splitlines() if it.startswith("Warning: "))
    assert warning.startswith(f"Warning: No digest was posted: {why}")


def test_the_address_is_checked_and_not_shown(daily: ProjectAtWork) -> None:
    assert daily.run("check", DIGEST_URL="secret")[0] == 1
    assert daily.errors == "DIGEST_URL has none of these forms: https://appriseit.com/services/\n"


SUNDAY, MONDAY = datetime(2026, 11, 1, 23, 30), datetime(2026, 11, 2, 0, 30)  # noqa: DTZ001
TUESDAY = datetime(2026, 11, 3, 4)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("every", "zone", "noted", "latest", "is_due"),
    [
        ("day", "UTC", SUNDAY, MONDAY, True),
        ("day", "Europe/Berlin", SUNDAY, MONDAY, False),
        ("week", "UTC", SUNDAY, MONDAY, True),
        ("week", "Europe/Berlin", SUNDAY, MONDAY, False),
        ("week", "America/New_York", MONDAY, TUESDAY, True),
        ("week", "UTC", MONDAY, TUESDAY, False),
        ("week", "UTC", None, TUESDAY, True),
        ("day", "UTC", TUESDAY, MONDAY, False),
        ("day", "UTC", None, None, False),
    ],
)
def test_a_day_or_a_week_is_over_where_the_organisation_is(
    every: str, zone: str, noted: datetime | None, latest: datetime | None, is_due: bool
) -> None:
    times = [{"acme": it} if it else {} for it in (noted, latest)]
    assert digest.is_due(every, ZoneInfo(zone), *times) is is_due


@pytest.mark.parametrize(
    "variables",
    ["{time_zone: America/New_York}", "{public_jobs: {time_zone: America/New_York}}"],
)
def test_the_zone_is_that_of_the_tables(daily: ProjectAtWork, variables: str) -> None:
    assert digest.time_zone().key == "UTC"
    daily.write("transform/dbt_project.yml", f"vars: {variables}")
    assert digest.time_zone().key == "America/New_York"
    lines = night(daily, listed(1, 2), [event("opened", 2)])
    assert lines[1].endswith("from 2026-11-01 00:00 to 2026-11-01 23:00 (America/New_York).")
