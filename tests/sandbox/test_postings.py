"""The sandbox's jobs look real, follow the API page, and are the same for the same seed."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from jsonschema import Draft202012Validator
from public_jobs_sandbox.fields import documented
from public_jobs_sandbox.postings import UNDOCUMENTED_FIELDS, make_jobs, summary

JOBS = make_jobs(600, seed=7)
FIELDS = documented("job_details")


def test_the_same_seed_gives_the_same_jobs() -> None:
    assert make_jobs(600, seed=7) == JOBS


def test_a_longer_list_starts_with_the_shorter_one() -> None:
    assert make_jobs(50, seed=7) == JOBS[:50]


def test_another_seed_or_organisation_gives_other_jobs() -> None:
    identifiers = {job["id"] for job in JOBS}

    for others in (make_jobs(50, seed=8), make_jobs(50, seed=7, organisation="Osprey Health")):
        assert identifiers.isdisjoint(job["id"] for job in others)


def test_every_job_has_the_documented_fields_and_the_five_undocumented_ones() -> None:
    for job in JOBS:
        assert job.keys() == {*FIELDS, *UNDOCUMENTED_FIELDS}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_has_values_of_its_documented_type(field: str) -> None:
    validator = Draft202012Validator(FIELDS[field])

    assert [job[field] for job in JOBS if not validator.is_valid(job[field])] == []


def test_an_undocumented_field_is_in_no_schema_file() -> None:
    assert FIELDS.keys() & set(UNDOCUMENTED_FIELDS) == set()


def test_a_summary_has_the_documented_fields_of_a_summary_and_the_values_of_the_job() -> None:
    job = JOBS[0]

    assert summary(job).keys() == documented("jobs").keys()
    assert summary(job).items() <= job.items()


def test_a_detail_documents_the_fields_of_a_summary_as_the_summary_does() -> None:
    in_details = {name: FIELDS.get(name) for name in documented("jobs")}

    assert in_details == documented("jobs")


def test_public_ids_are_unique_and_fit_into_a_url() -> None:
    public_ids = [job["publicId"] for job in JOBS]

    assert len(set(public_ids)) == len(public_ids)
    for public_id in public_ids:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{6}", public_id)


def test_salaries_are_ranges_in_several_currencies_and_magnitudes() -> None:
    lowest = {job["currency"]: job["minSalary"] for job in JOBS}

    assert len(lowest) >= 8
    assert lowest["JPY"] > 10 * lowest["EUR"]
    assert all(0 < job["minSalary"] < job["maxSalary"] for job in JOBS)


def test_some_numbers_have_short_decimal_fractions() -> None:
    numbers = [job[field] for job in JOBS for field in ("minSalary", "maxSalary")]
    fractions = [json.dumps(number) for number in numbers if isinstance(number, float)]

    assert fractions
    assert all(re.fullmatch(r"\d+\.\d{1,2}", fraction) for fraction in fractions)
    assert any(job["yearsExperience"] % 1 == 0.5 for job in JOBS)


def test_jobs_have_none_to_four_knockout_questions() -> None:
    questions = [question for job in JOBS for question in job["knockoutQuestions"]]

    assert {len(job["knockoutQuestions"]) for job in JOBS} == {0, 1, 2, 3, 4}
    assert {question["required"] for question in questions} == {True, False}
    assert all(question["type"] == "boolean" for question in questions)
    assert len({question["id"] for question in questions}) == len(questions)
    assert not [question for question in questions if re.search("[{}]", question["question"])]


def test_jobs_are_varied() -> None:
    for field, at_least in (
        ("jobTitle", 80),
        ("location", 15),
        ("department", 8),
        ("seniorityLevel", 5),
        ("type", 4),
        ("primaryLanguage", 6),
        ("educationLevel", 5),
        ("roleOverview", 100),
    ):
        commonest, times = Counter(job[field] for job in JOBS).most_common(1)[0]
        assert len({job[field] for job in JOBS}) >= at_least, field
        assert times < len(JOBS) / 2, commonest
