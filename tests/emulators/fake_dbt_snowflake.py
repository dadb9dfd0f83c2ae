"""dbt-snowflake on fakesnow: `fake_dbt_snowflake.py ARGUMENTS`.

What fakesnow cannot do, and how this works around it:

- SHOW OBJECTS without the word SCHEMA, or with a name in small letters.
- Read JSON by a name in a column, its type, and its text: macros of DuckDB do that.
- A MERGE's values without the name of their table.
- Comments and transactions: there are none.
- A temporary table with the name of a database: it stays.
"""

from __future__ import annotations

import os
import re
from typing import Any

import fakesnow
from dbt.cli.main import cli
from fakesnow.cursor import FakeSnowflakeCursor

execute = FakeSnowflakeCursor.execute

MACROS = (
    "json_get(it, name) as json_extract(it, '/' || replace(replace(name, '~', '~0'), '/', '~1'))",
    "json_typeof(value) as replace(json_type(value), 'NULL', 'NULL_VALUE')",
    "json_to_varchar(value) as value ->> '$'",
)


def understood(cursor: FakeSnowflakeCursor, command: str, *others: Any, **options: Any) -> Any:
    if re.match(r"\s*show objects ", command):
        command = re.sub(r" in (\S+)", lambda it: f" in schema {it[1].upper()}", command, count=1)
    command = re.sub(r"comment *=? *\$\$.*?\$\$", "", command, flags=re.DOTALL | re.IGNORECASE)
    command = re.sub(r"(create or replace) temporary (table)", r"\1 \2", command)
    if re.match(r"\s*merge into ", command):
        into, values, columns = command.partition("values (")
        columns = re.sub(r'("\w+")(?=[,)])', r"DBT_INTERNAL_SOURCE.\1", columns)
        command = into + values + columns
    command = re.sub(r"\b(get|typeof|to_varchar)\(", r"json_\1(", command)
    for macro in MACROS:
        cursor._duck_conn.execute(f"create or replace temp macro {macro}")
    return execute(cursor, command, *others, **options)


FakeSnowflakeCursor.execute = understood

if __name__ == "__main__":
    unknown = [r"\s*alter\s+table \S+ alter\s+\"", r"\s*comment on ", "begin", "commit"]
    with fakesnow.patch(db_path=os.environ["FAKESNOW"], nop_regexes=unknown):
        cli()
