"""What the tables have to hold, from what the sandbox published and without the tap's own code."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from e2e.stores import exact
from harness import json_text
from queries.warehouse import FIELDS as ALL_FIELDS
from queries.warehouse import TABLES

if TYPE_CHECKING:
    from e2e.stores import Row
    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import Sandbox

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
