"""Realistic job postings, the same for the same seed (*Resources and their fields*).

They are as untidy as those of public boards, which `docs/change/postings.md` counts.
"""

import itertools
import re
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from public_jobs_sandbox.texts import INTRO, html_list, more_items, overview
from public_jobs_sandbox.vocabulary import (
    BENEFITS,
    BENEFITS_OF_ALL,
    DEPARTMENTS,
    EDUCATION_LEVELS,
    EMPLOYMENT_TYPES,
    OPENINGS,
    PLACES,
    QUALIFICATIONS,
    QUESTIONS,
    SENIORITIES,
    WORK_AUTHORISATIONS,
    Department,
    Place,
    Seniority,
)

# A whole job, as the detail operation returns it (*Job detail*).
Job = dict[str, Any]

# The fields of a job in the list (*Job summary*).
SUMMARY_FIELDS = (
    "id",
    "publicId",
    "jobTitle",
    "location",
    "department",
    "type",
    "seniorityLevel",
    "minSalary",
    "maxSalary",
    "currency",
    "jobUrl",
    "applyUrl",
)

# Invented names for the five fields that the API page describes but does not name, and for one that
# it lacks: what a salary is paid for, which boards do say.
UNDOCUMENTED_FIELDS = (
    "keyResponsibilities",
    "requiredSkills",
    "preferredQualifications",
    "benefitsDescription",
    "workAuthorizationRequirements",
    "salaryPeriod",
)
HOURS_IN_A_YEAR = 2080


def make_jobs(count: int, *, seed: int = 1, organisation: str = "Halden Robotics") -> list[Job]:
    """Invent `count` jobs with every field of the API page (*Job detail*).

    The same arguments give the same jobs.
    A longer list starts with the jobs of a shorter one.
    """
    return [*itertools.islice(invented_jobs(seed=seed, organisation=organisation), count)]


def invented_jobs(*, seed: int = 1, organisation: str = "Halden Robotics") -> Iterator[Job]:
    """Yield the same jobs, without an end."""
    random = Random(f"{organisation}/{seed}")  # noqa: S311 - postings, not secrets
    site = f"https://jobs.example.com/{_slug(organisation)}"
    taken: set[str] = set()
    while True:
        job, place = _make_job(random, site)
        if job["publicId"] not in taken:
            taken.add(job["publicId"])
            yield _untidy(job, place, organisation)


def spellings(place: Place) -> tuple[str, ...]:
    """Return how jobs write a place, the usual way first."""
    if "(" in place.city:
        return (place.city,)
    return (f"{place.city}, {place.country}", place.city, f"{place.country} - {place.city}")


def locations() -> str:
    """Return the seed of locations, which has each spelling of each place, as CSV."""
    lines = ["location,city,country,is_remote"]
    for place in PLACES:
        is_remote = place.city.startswith("Remote")
        city = "" if is_remote else place.city.partition(",")[0]
        end = f"{city},{place.country},{str(is_remote).lower()}"
        lines += [f'"{spelling}",{end}' for spelling in spellings(place)]
    return "\n".join(lines)


def reworded(job: Job) -> Job:
    """Return the field that changes if an organisation says something new in all its texts."""
    news = f"{INTRO}<p>This year we open two more sites &amp; hire in all departments.</p>"
    return {"roleOverview": job["roleOverview"].replace(INTRO, news)}


def moved(job: Job) -> Job:
    """Return the fields that change if the careers site of an organisation moves."""
    return {name: job[name].replace("//jobs.", "//careers.") for name in ("jobUrl", "applyUrl")}


def renamed(department: str, name: str) -> Callable[[Job], Job]:
    """Return what changes in each job if an organisation renames a department."""
    return lambda job: {"department": name} if job["department"] == department else {}


def summary(job: Job) -> Job:
    """Return the part of a job that the list shows (*Job summary*)."""
    return {field: job[field] for field in SUMMARY_FIELDS if field in job}


def _untidy(job: Job, place: Place, organisation: str) -> Job:
    """Return a job as people fill it in: long texts, and one place or salary in several forms."""
    # By draws of its own: a draw from the other `random` would change every later job.
    random = Random(job["id"])  # noqa: S311 - postings, not secrets
    words = {"city": place.city, "department": job["department"]}
    language = place.language if random.randrange(3) == 0 else "English"
    title = job["jobTitle"]
    location, *others = spellings(place)
    if others and random.randrange(5) == 0:
        location = random.choice(others)
    duties = job["keyResponsibilities"].splitlines()
    return (
        job
        | _pay(random, job)
        | {
            "jobTitle": random.choice((f"{title} ", f" {title}"))
            if random.randrange(10) == 0
            else title,
            "location": f"{location} " if random.randrange(33) == 0 else location,
            "roleOverview": overview(random, organisation, language, job["roleOverview"], **words),
            "keyResponsibilities": html_list(random, [*duties, *more_items(random)]),
            "benefitsDescription": f"<p>{job['benefitsDescription']}</p>{BENEFITS_OF_ALL}",
        }
    )


def _pay(random: Random, job: Job) -> Job:
    """Return the fields about pay: often none, or by the hour, and now and then a wrong one."""
    low, high, kind = job["minSalary"], job["maxSalary"], random.random()
    none = kind < 0.2  # noqa: PLR2004 - shares of the jobs, here and below
    if none:
        low = high = None
    elif kind < 0.23:  # noqa: PLR2004
        low = high = 0
    elif kind < 0.25:  # noqa: PLR2004
        high = low + 100
    by_the_hour = 0.25 <= kind < 0.33  # noqa: PLR2004
    if by_the_hour:
        low, high = (round(it / HOURS_IN_A_YEAR, 2) for it in (low, high))
    return {
        "minSalary": low,
        "maxSalary": high,
        "currency": None if none else job["currency"],
        "salaryPeriod": None if none else "hour" if by_the_hour else "year",
    }


def _make_job(random: Random, site: str) -> tuple[Job, Place]:
    name = random.choice(tuple(DEPARTMENTS))
    department = DEPARTMENTS[name]
    place = random.choice(PLACES)
    seniority = random.choice(SENIORITIES)
    title = _title(random, department, seniority, place)
    identifier = uuid.UUID(int=random.getrandbits(128), version=4)
    public_id = f"{_slug(title)}-{_slug(place.city)}-{identifier.hex[:6]}"
    low, high = _salaries(random, place, seniority)
    years = _years(random, seniority)
    skills = random.sample(department.skills, k=random.randint(2, len(department.skills) - 1))
    duties = random.sample(department.duties, k=2)
    # Give a new field a value in `_untidy`: a draw here changes every later job, and with them the
    # records and pictures on the pages.
    job = {
        "id": str(identifier),
        "publicId": public_id,
        "jobTitle": title,
        "location": spellings(place)[0],
        "department": name,
        "type": _employment(random, seniority),
        "seniorityLevel": seniority.level,
        "minSalary": low,
        "maxSalary": high,
        "currency": place.currency,
        "jobUrl": f"{site}/{public_id}",
        "applyUrl": f"{site}/{public_id}/apply",
        "roleOverview": _overview(random, name, place, duties),
        "yearsExperience": years,
        "primaryLanguage": place.language,
        "educationLevel": random.choice(EDUCATION_LEVELS),
        "knockoutQuestions": _questions(random, place, skills[0], years),
        "keyResponsibilities": "\n".join(f"{duty[0].upper()}{duty[1:]}" for duty in duties),
        "requiredSkills": skills,
        "preferredQualifications": random.sample(QUALIFICATIONS, k=random.randint(0, 3)),
        "benefitsDescription": random.choice(BENEFITS),
        "workAuthorizationRequirements": random.choice(WORK_AUTHORISATIONS).format(
            country=_in_a_sentence(place.country)
        ),
    }
    return job, place


def _title(random: Random, department: Department, seniority: Seniority, place: Place) -> str:
    role = random.choice(department.titles)
    title = f"{seniority.prefix} {role}".strip()
    if seniority.level == "intern":
        return f"{role} Intern"
    return f"{title} (m/w/d)" if place.language == "German" else title


def _employment(random: Random, seniority: Seniority) -> str:
    return "internship" if seniority.level == "intern" else random.choice(EMPLOYMENT_TYPES)


def _salaries(random: Random, place: Place, seniority: Seniority) -> tuple[float, float]:
    """Return a salary range in round numbers; in one job of eight they have fractions."""
    step = 5 * 10 ** (len(str(place.salary)) - 3)
    middle = place.salary * seniority.factor * random.uniform(0.85, 1.15)
    low: float = round(middle * 0.9 / step) * step
    high: float = round(middle * random.uniform(1.05, 1.25) / step) * step
    if random.randrange(8) == 0 and place.currency != "JPY":
        # JSON writes these fractions as short as they are here.
        low += random.choice((0.5, 0.25, 0.1))
        high += random.choice((0.5, 0.75, 0.9))
    return low, high


def _years(random: Random, seniority: Seniority) -> float:
    years: float = random.randint(*seniority.years)
    return years + 0.5 if years and random.randrange(6) == 0 else years


def _overview(random: Random, department: str, place: Place, duties: list[str]) -> str:
    opening = random.choice(OPENINGS).format(duty=duties[0], department=department, city=place.city)
    return f"{opening} You will also {duties[1]}."


def _questions(random: Random, place: Place, skill: str, years: float) -> list[Job]:
    texts = random.sample(QUESTIONS, k=random.randint(0, 4))
    questions = [
        {
            "id": f"q-{random.getrandbits(32):08x}",
            "question": text.format(
                country=_in_a_sentence(place.country),
                language=place.language,
                city=place.city,
                skill=skill,
                years=years,
            ),
            "required": random.random() < 0.7,  # noqa: PLR2004 - most questions must be answered
            "type": "boolean",
        }
        for text in texts
    ]
    # Leave out "at least 0 years". This is the last step, so that all other texts stay the same.
    asked = [years > 1 or "{years}" not in text for text in texts]
    return list(itertools.compress(questions, asked))


def _in_a_sentence(country: str) -> str:
    return f"the {country}" if country.startswith("United") else country


def _slug(text: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")
