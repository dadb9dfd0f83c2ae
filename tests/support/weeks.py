"""Eight weeks of a board as real ones are.

Openings come in waves, and many jobs close on one day. Another system takes over, in which every id
is another one. Jobs return, are published again under other ids, stand in several places and share
titles; texts have blanks around them. Lists lack most jobs for a night, a state is lost, and some
nights are loaded and not built.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from public_jobs_sandbox.postings import Job, make_jobs
from support.portal import Portal

# At half past midnight in Berlin, where summer time ends three weeks later: from then on, a sync at
# the same time of UTC is on the day before.
FIRST_NIGHT = datetime(2026, 10, 5, 22, 30, tzinfo=UTC)
ZONE = "Europe/Berlin"

Build = Callable[[], object]


def eight_weeks(portal: Portal, build: Build) -> None:
    """Play them up to the last load, which is not built yet.

    Args:
        portal: It has no jobs but its first twelve.
        build: Records what was loaded.
    """
    first_week(portal, build)
    a_job_that_is_away(portal, build)
    another_system(portal, build)
    a_night_without_most_jobs(portal, build)
    closed = the_end_of_summer_time(portal, build)
    the_end_of_a_quarter(portal, build)
    the_first_of_a_month(portal, closed)


def begin(portal: Portal, night: int, **later: float) -> None:
    """Begin a night, with a signed URL and a counter that are others in each."""
    portal.now = FIRST_NIGHT + timedelta(days=night - 1, **later)
    now = int(portal.now.timestamp())
    edit(portal, 7, applyUrl=f"https://example.com/apply?signature={now}", viewCount=now)


def published(portal: Portal) -> list[Job]:
    return [posting.job for posting in portal.sandbox.organisation.published()]


def edit(portal: Portal, number: int, **fields: object) -> None:
    """Edit the job that is in this place of the list."""
    portal.sandbox.edit(published(portal)[number]["publicId"], **fields)


def close(portal: Portal, jobs: list[Job]) -> None:
    for job in jobs:
        portal.sandbox.unpublish(job["publicId"])


def publish(portal: Portal, jobs: list[Job]) -> None:
    for job in jobs:
        portal.publish(job)


def with_other_ids(jobs: list[Job], suffix: str) -> list[Job]:
    return [job | {name: job[name] + suffix for name in ("id", "publicId")} for job in jobs]


def first_week(portal: Portal, build: Build) -> None:
    publish(portal, make_jobs(12, seed=101))
    for number, place in enumerate(["Bern", " Basel", "Bern\N{NO-BREAK SPACE}", "Remote (EU)"]):
        edit(portal, number, jobTitle="Cook", location=place)
    edit(portal, 4, department=" \N{NO-BREAK SPACE}", note=None, other="")
    edit(
        portal,
        8,
        department="Cafe\N{COMBINING ACUTE ACCENT}",
        team=["Cafe\N{COMBINING ACUTE ACCENT}"],
    )
    edit(portal, 6, updatedAt="noon", version="2", **{"a b": "b", "a_b": "c"})
    edit(portal, 6, heading="[Bern] Cook", excerpt="cut within an emoji \ud83d")
    edit(portal, 5, minSalary=14_778.51, maxSalary=0, salaryPeriod="month", remark=" text \u200b")
    edit(portal, 5, perks={}, tools=[])
    asked: list[Job] = [
        {"id": name, "question": f"{name}?", "required": name in "ac", "type": "boolean"}
        for name in "abcde"
    ]
    edit(portal, 3, knockoutQuestions=asked)
    begin(portal, 1)
    portal.sync()
    build()

    begin(portal, 2)
    for number in range(0, 20, 4):
        edit(portal, number, department="People & Culture")
    portal.sync()

    # Nothing that counts: blanks, another form of Unicode, what was null or empty and is absent.
    begin(portal, 3)
    edit(portal, 8, department="Caf\N{LATIN SMALL LETTER E WITH ACUTE}")
    edit(portal, 8, team=["Caf\N{LATIN SMALL LETTER E WITH ACUTE}"])
    edit(portal, 0, jobTitle="\tCook ")
    edit(portal, 1, location="\N{EM SPACE}Basel\N{NO-BREAK SPACE}")
    job = published(portal)[4]
    portal.publish({name: value for name, value in job.items() if name not in {"note", "other"}})
    edit(portal, 5, remark="text")
    edit(portal, 3, knockoutQuestions=asked[::-1])
    portal.sync()
    build()

    begin(portal, 5)
    publish(portal, make_jobs(10, seed=105))
    portal.sync()

    # Twice in a night, at midnight in Berlin and later.
    begin(portal, 6, minutes=-30)
    close(portal, published(portal)[8:9])
    portal.sync()
    begin(portal, 6)
    publish(portal, make_jobs(1, seed=106))
    edit(portal, 10, department="Moved")
    edit(portal, 6, heading="[closed] Cook")
    others: list[Job] = [
        {"required": False},
        {"question": "B?", "required": True},
        {"id": "z", "required": None},
        {"question": None},
    ]
    asked[:4] = [question | other for question, other in zip(asked, others, strict=False)]
    edit(portal, 3, knockoutQuestions=[*asked[:4], asked[4] | {"id": "y", "question": "Y?"}])
    portal.sync()
    build()


def a_job_that_is_away(portal: Portal, build: Build) -> None:
    """Its pay changes in a night that nobody builds; it closes, and comes back elsewhere."""
    begin(portal, 9)
    edit(portal, 5, minSalary=60_000, salaryPeriod="year")
    portal.sync()

    begin(portal, 10)
    away = published(portal)[5]
    close(portal, [away])
    portal.sync()

    # Nobody builds when it comes back, nor ever sees one that opened and closed meanwhile.
    begin(portal, 11)
    brief = make_jobs(1, seed=111)
    publish(portal, [away | {"department": "Elsewhere"}, *brief])
    portal.sync()

    begin(portal, 12)
    close(portal, brief)
    portal.sync()
    build()


def another_system(portal: Portal, build: Build) -> None:
    """All ids are others from one night to the next, in which a list lacks all that were known."""
    begin(portal, 14)
    old = published(portal)
    close(portal, old)
    publish(portal, with_other_ids(old, "-new"))
    portal.sync_short()
    build()
    begin(portal, 14, minutes=12)
    portal.sync_short()

    begin(portal, 15)
    portal.sync()
    build()

    # The state is lost. A job that closes now has no row that says so.
    begin(portal, 18)
    close(portal, published(portal)[9:10])
    edit(portal, 2, location=None)
    portal.state = None
    portal.sync()
    build()


def a_night_without_most_jobs(portal: Portal, build: Build) -> None:
    """They are listed again in the next one, in which nobody has moved but those of that night."""
    begin(portal, 20)
    missing = published(portal)[8:]
    close(portal, missing)
    publish(portal, make_jobs(2, seed=120))
    edit(portal, 3, department="Moved in a night without a listing", minSalary=1_000)
    portal.sync_short()
    # With all tests: the tables agree about it.
    portal.build()

    begin(portal, 21)
    publish(portal, missing[1:])
    portal.sync()
    build()

    # The same, and nobody builds: neither then nor in the night after.
    begin(portal, 23)
    missing = published(portal)[8:]
    close(portal, missing)
    portal.sync_short()
    begin(portal, 24)
    publish(portal, missing)
    edit(portal, 2, publicId="in-another-place")
    portal.sync()


# What jobs are in one build, and what is other in the next. Only department A is called otherwise:
# what others leave, they leave alone, or not all of them leave, or another job comes.
RENAMED = ({"department": "A", "location": "Of three"}, {"department": "B", "location": "Of two"})
PAY = {"minSalary": 50_000, "maxSalary": 60_000, "currency": "EUR"}
MOVES: list[tuple[Job, Job]] = [
    RENAMED,
    RENAMED,
    ({"location": "Of three", **PAY}, {"minSalary": 0, "maxSalary": 0}),
    (
        {"seniorityLevel": "The only one", "salaryPeriod": None, **PAY},
        {"seniorityLevel": "Another", "salaryPeriod": "year"},
    ),
    ({"type": "Left by two"}, {"type": "New"}),
    ({"type": "Left by two"}, {"type": "New"}),
    ({"type": "Of one", "remark": "-" * 501}, {"type": "Left by two", "remark": "+" * 501}),
    (PAY, {"maxSalary": 0}),
    (PAY, {"minSalary": 0}),
    (PAY, {"currency": "CHF"}),
]


def the_end_of_summer_time(portal: Portal, build: Build) -> list[Job]:
    """The day of Berlin begins an hour later from now on.

    Returns:
        The job that closes.
    """
    begin(portal, 27, minutes=30)
    closed = published(portal)[2:3]
    close(portal, closed)
    for number, (before, _) in enumerate(MOVES):
        edit(portal, number, **before)
    portal.sync()
    build()
    return closed


def the_end_of_a_quarter(portal: Portal, build: Build) -> None:
    """Two of five jobs close on one day; some are published again under other ids."""
    begin(portal, 35)
    for number, (_, after) in enumerate(MOVES):
        edit(portal, number, **after)
    closed = published(portal)[10:18]
    close(portal, closed)
    portal.sync()
    build()

    begin(portal, 40)
    publish(portal, with_other_ids(closed[:3], "-again"))
    portal.sync()

    # Two return as another one that has closed was: they were published before.
    begin(portal, 42)
    other = {name: closed[5][name] for name in ("jobTitle", "location")}
    publish(portal, [job | other for job in closed[3:5]])
    portal.sync()
    build()


def the_first_of_a_month(portal: Portal, closed: list[Job]) -> None:
    """A job is published again under another id, just thirty days after it closed."""
    begin(portal, 57, minutes=30)
    publish(portal, with_other_ids(closed, "-later"))
    portal.sync()

    begin(portal, 58)
    publish(portal, make_jobs(6, seed=156))
    portal.sync()
