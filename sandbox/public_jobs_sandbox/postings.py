"""Realistic job postings, the same for the same seed (*Resources and their fields*)."""

import itertools
import re
import unicodedata
import uuid
from random import Random
from typing import Any

from public_jobs_sandbox.vocabulary import (
    BENEFITS,
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

# Invented names for the five fields that the API page describes but does not name.
UNDOCUMENTED_FIELDS = (
    "keyResponsibilities",
    "requiredSkills",
    "preferredQualifications",
    "benefitsDescription",
    "workAuthorizationRequirements",
)


def make_jobs(count: int, *, seed: int = 1, organisation: str = "Halden Robotics") -> list[Job]:
    """Invent `count` jobs with every field of the API page (*Job detail*).

    The same arguments give the same jobs.
    A longer list starts with the jobs of a shorter one.
    """
    random = Random(f"{organisation}/{seed}")  # noqa: S311 - postings, not secrets
    site = f"https://jobs.example.com/{_slug(organisation)}"
    taken: set[str] = set()
    jobs: list[Job] = []
    while len(jobs) < count:
        job = _make_job(random, site)
        if job["publicId"] not in taken:
            taken.add(job["publicId"])
            jobs.append(job)
    return jobs


def summary(job: Job) -> Job:
    """Return the part of a job that the list shows (*Job summary*)."""
    return {field: job[field] for field in SUMMARY_FIELDS if field in job}


def _make_job(random: Random, site: str) -> Job:
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
    # Give a new field a value without another draw from `random`: a draw changes every later job,
    # and with them the records and charts in the README.
    return {
        "id": str(identifier),
        "publicId": public_id,
        "jobTitle": title,
        "location": place.city if "(" in place.city else f"{place.city}, {place.country}",
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
        "keyResponsibilities": "\n".join(f"- {duty[0].upper()}{duty[1:]}" for duty in duties),
        "requiredSkills": skills,
        "preferredQualifications": random.sample(QUALIFICATIONS, k=random.randint(0, 3)),
        "benefitsDescription": random.choice(BENEFITS),
        "workAuthorizationRequirements": random.choice(WORK_AUTHORISATIONS).format(
            country=_in_a_sentence(place.country)
        ),
    }


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
