"""Jobs with awkward values, how they change between runs, and what the tables have to hold then.

`record` keeps what the tap writes in each run, for every target to load.
The rows come from what the sandbox published, and without the tap's own code.
"""

import json
import re
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from e2e.pipeline import environment, options, program
from e2e.stores import FIELDS as ALL_FIELDS
from e2e.stores import TABLES, Row, exact
from harness import json_text, parse, reaching
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import Job, make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.sync.state import HOUR

RUNS = ("a backfill", "edits", "a return", "an empty list")

AWKWARD = [
    'Head of "R&D", EMEA; (m/w/d)',
    "two\nlines\r\nand\ta tab",
    "Łódź 東京 🚀 naïve",
    "back\\slash \\N \\n 'quoted' ''",
    "007",
    "1e5",
    "true",
    " leading and trailing ",
    "$MELTANO_PROJECT_ROOT ${HOME} {{ jinja }} %s",
    "x" * 70_000,
]
NUMBERS = [0, -1, 0.1, 1e-07, 12345678901.23, 2**53, -(2**53), 99999.99, 0.30000000000000004, 3]
DEEP = json.loads("[" * 90 + "[1.50, 1e-7, 12345678901234567890]" + "]" * 90)
# Values that some warehouses cannot store.
UNSTORABLE: list[Job] = [
    {"jobTitle": "NUL \0 here", "roleOverview": "\0", "department": "good 😀 pair"},
    {"jobTitle": "high half \ud83d", "location": "\ude00 low half", "roleOverview": "\ude00\ud83d"},
    {"minSalary": 10**400, "maxSalary": 2**53 + 1, "yearsExperience": 1e22},
    {"keyResponsibilities": {"a\0b": ["x\0", "\ud800", 10**400, {"k\udfff": "v\0"}]}},
    {
        "nested": DEEP,
        "knockoutQuestions": [
            {"id": "q\0", "question": "\ud83d?", "required": False, "n": 10**400}
        ],
    },
    {"new\0field": "v\0", "half \udc00": 10**400, "benefitsDescription": None, "😀": "\udc00"},
]
PUBLIC_IDS = [
    f"{number}-{text}" for number, text in enumerate(["a/b", "c d", "e?f#g", "ü%2F", ".."])
]


def awkward_jobs() -> list[Job]:
    """Jobs whose values test quoting, nulls, encodings, types and the precision of numbers."""
    jobs = make_jobs(len(AWKWARD), seed=2)
    for job, text, number in zip(jobs, AWKWARD, NUMBERS, strict=True):
        job |= {
            "jobTitle": text,
            "roleOverview": text,
            "minSalary": number,
            "yearsExperience": number,
            "keyResponsibilities": {"nested": [text, number, None, "", {"deep": True}]},
            "knockoutQuestions": [{"id": "q", "question": text, "required": False, "points": 1.5}],
        }
    for job, public_id in zip(jobs, PUBLIC_IDS, strict=False):
        job["publicId"] = public_id
    jobs[0] |= {"department": "", "location": None, "knockoutQuestions": []}
    del jobs[1]["maxSalary"], jobs[1]["educationLevel"]
    jobs[2] |= {"knockoutQuestions": None}
    jobs[3] |= {"maxSalary": "negotiable"}
    others = make_jobs(len(UNSTORABLE), seed=4)
    return jobs + [job | values for job, values in zip(others, UNSTORABLE, strict=True)]


def change(sandbox: Sandbox, run: str) -> None:
    """Change the jobs before a run, in every way that there is."""
    ids = list(sandbox.organisation.postings)
    if run == "edits":
        sandbox.edit(ids[0], jobTitle="Retitled", minSalary=1.25, location=None)
        sandbox.edit(ids[2], requiredSkills=["new", "skills"], knockoutQuestions=[])
        sandbox.unpublish(ids[1])
        sandbox.unpublish("0-a/b")
        for job in make_jobs(2, seed=3):
            sandbox.publish(job)
    if run == "a return":
        sandbox.edit(ids[1], jobTitle="Back again")
        sandbox.publish(ids[1])
        sandbox.unpublish("1-c d")
    if run == "an empty list":
        for posting in sandbox.organisation.published():
            sandbox.unpublish(posting.job["publicId"])


# The column of each field of the API, by table; `meltano.yml` asks for snake case.
FIELDS = {
    table: {
        name: column for name, column in ALL_FIELDS[table].items() if name != "additionalFields"
    }
    for table in ("jobs", "job_details")
}


def published(sandbox: Sandbox) -> list[Job]:
    """The published jobs, in the order of the list."""
    return [posting.job for posting in sandbox.organisation.published()]


def storable(value: Any) -> Any:
    """What replaces a value that some warehouses cannot store, at any depth."""
    if isinstance(value, str):
        return re.sub("[\0\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, int | Decimal) and not -(2**63) <= value < 2**63:
        return str(value)
    return list(map(storable, value)) if isinstance(value, list) else value


def is_exact(value: Any) -> bool:
    """Whether a column of doubles holds a number as it is; an integer may be too large for that."""
    return not isinstance(value, str) and (not isinstance(value, int) or abs(value) <= 2**53)


def job_row(job: Job, table: str) -> Row:
    """The row of a published job, its values as the API has them, nested ones as JSON text.

    What has no column, or does not fit its own, is in `additional_fields`.
    """
    values = storable(exact(json.dumps(job)))
    others = {} if table == "jobs" else {f: v for f, v in values.items() if f not in FIELDS[table]}
    found = {column: values.get(name) for name, column in FIELDS[table].items()}
    for name, column in FIELDS[table].items():
        if TABLES[table][column] == "number" and not is_exact(found[column]):
            others[name], found[column] = found[column], None
    row = found | {"additional_fields": others or None}
    return {name: json_text(v) if isinstance(v, list | dict) else v for name, v in row.items()}


# A column of each type that the first run leaves out. A target cannot know why one comes later: a
# wider selection, a declared field or a new version of the tap.
LATER = {"jobs": "jobTitle", "job_details": "yearsExperience", "job_publications": "openedAfter"}


class Recording(NamedTuple):
    """A finished run of the tap.

    Attributes:
        text: What it wrote.
        published: What the API had.
        left_out: The column of each table that it left out.
    """

    text: str
    published: list[Job]
    left_out: dict[str, str]


def record(folder: Path, **others: str) -> dict[str, Recording]:
    """Run the tap before and after each change of the jobs, with other settings if given.

    From the second run on, each table has one column more. The clock is the one on the wall.
    """
    sandbox = Sandbox.demo(jobs=5, options=Options(limited=False), clock=time.time)
    for job in awkward_jobs():
        sandbox.publish(job)
    columns = {table: ALL_FIELDS[table][field] for table, field in LATER.items()}
    is_source = others.get("column_naming") == "source"
    without = {it: {LATER[it] if is_source else columns[it]: None} for it in columns}
    tap = program(Path(sys.executable).with_name("tap-public-jobs"), "tap_public_jobs.tap")
    found = {}
    state: dict[str, Any] = {}
    with serving(sandbox) as base_url:
        config = reaching(sandbox, base_url) | {"page_size": 5, "column_naming": "snake_case"}
        for name in RUNS:
            change(sandbox, name)
            is_first = name == RUNS[0]
            settings = config | others | ({"stream_maps": without} if is_first else {})
            run = tap.run(options(folder, config=settings, state=state), environment())
            state = parse(run.stdout).state
            if name == "an empty list":  # it is accepted after an hour
                assert "21 of 21 published jobs disappeared from the list at once" in run.stderr
                for job in state["bookmarks"]["jobs"]["sync"]["jobs"]:
                    job[-2] -= HOUR  # since when it is missing
                run = tap.run(options(folder, config=settings, state=state), environment())
            assert run.returncode == 0, run.stderr
            found[name] = Recording(run.stdout, published(sandbox), columns if is_first else {})
    return found
