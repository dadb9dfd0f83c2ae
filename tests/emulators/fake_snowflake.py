"""target-snowflake or dbt-snowflake, whichever is installed, or a query, on fakesnow.

`fake_snowflake.py --config FILE < MESSAGES`, or with the arguments of dbt, or
`fake_snowflake.py < QUERY`.
What fakesnow cannot do, and how this works around it, for the target:

- A MERGE from a staged file: the lines of the file become a table, and so does the target's own
  SELECT from them, with its casts and its choice of the last row of a key.
- `REMOVE` and `DROP FILE FORMAT`: nothing is done.
- A MERGE in a session without a schema: each session has one.
- Two statements at once: one stream is loaded after the other.

And for dbt:

- SHOW OBJECTS without the word SCHEMA, or with a name in small letters.
- The type of a JSON value, and its text: macros of DuckDB do that.
- A MERGE's values without the name of their table.
- Transactions: there are none.
- A temporary table or view with the name of a database: it stays.
"""

import gzip
import json
import os
import re
import sys
from decimal import Decimal
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlparse

import fakesnow
import snowflake.connector
from fakesnow.cursor import FakeSnowflakeCursor

DATABASE = {"database": "WAREHOUSE", "schema": "PUBLIC_JOBS"}
MACROS = (
    "json_typeof(value) as replace(json_type(value), 'NULL', 'NULL_VALUE')",
    "json_to_varchar(value) as value ->> '$'",
)

execute = FakeSnowflakeCursor.execute


def add_macros(cursor: FakeSnowflakeCursor) -> None:
    for macro in MACROS:
        cursor._duck_conn.execute(f"create or replace temp macro {macro}")


def understood(cursor: FakeSnowflakeCursor, command: str, *others: Any, **options: Any) -> Any:
    if re.match(r"\s*show objects ", command):
        command = re.sub(r" in (\S+)", lambda it: f" in schema {it[1].upper()}", command, count=1)
    command = re.sub(r"(create or replace)\s+temporary (table|view)", r"\1 \2", command)
    if re.match(r"\s*merge into ", command):
        into, values, columns = command.partition("values (")
        columns = re.sub(r'("\w+")(?=[,)])', r"DBT_INTERNAL_SOURCE.\1", columns)
        command = into + values + columns
    command = re.sub(r"\b(typeof|to_varchar)\(", r"json_\1(", command)
    add_macros(cursor)
    return execute(cursor, command, *others, **options)


def answer(query: str) -> list[dict[str, Any]]:
    with snowflake.connector.connect(**DATABASE) as connection:
        cursor = connection.cursor(snowflake.connector.DictCursor)
        add_macros(cursor)  # for views that dbt has made
        return [*cursor.execute(query).fetchall()]


def as_json(value: Any) -> float | str:
    return float(value) if isinstance(value, Decimal) else str(value)


if find_spec("dbt"):
    from dbt.cli.main import cli as main

    FakeSnowflakeCursor.execute = understood
    unknown = [r"\s*alter\s+table \S+ alter\s+\"", "begin", "commit"]
else:
    from sqlalchemy import TextClause, text
    from target_snowflake.connector import SnowflakeConnector
    from target_snowflake.sinks import SnowflakeSink
    from target_snowflake.target import TargetSnowflake

    class Connector(SnowflakeConnector):
        def get_connect_args(self) -> dict[str, Any]:
            return {**super().get_connect_args(), **DATABASE}

        def put_batches_to_stage(self, sync_id: str, files: list[str]) -> None:  # noqa: ARG002
            with self._connect() as connection, connection.begin():
                connection.execute(text("create or replace table lines (line variant, number int)"))
                for file in files:
                    with gzip.open(urlparse(file).path, "rt", encoding="utf-8") as lines:
                        for number, line in enumerate(lines):
                            insert = text("insert into lines select parse_json(:line), :number")
                            connection.execute(insert, {"line": line, "number": number})

        def _get_merge_from_stage_statement(
            self, **names: Any
        ) -> tuple[TextClause, dict[str, Any]]:
            statement, arguments = super()._get_merge_from_stage_statement(**names)
            before, select, after = re.split(r"using \((.*)\) s (?=on )", statement.text)
            select = re.sub(r"'@~/[^']*'\(file_format => .*?\)(?= QUALIFY)", "lines", select)
            select = select.replace("$1:", "line:").replace("SEQ8()", "number")
            with self._connect() as connection, connection.begin():
                connection.execute(text(f"create or replace table s as {select}"))
            return text(f"{before} using s {after}"), arguments

    main = TargetSnowflake.cli
    SnowflakeSink.connector_class = Connector
    TargetSnowflake.max_parallelism = 1
    unknown = ["^remove ", "^drop file format "]

if __name__ == "__main__":
    with fakesnow.patch(db_path=os.environ["FAKESNOW"], nop_regexes=unknown):
        if len(sys.argv) > 1:
            main()
        else:
            json.dump(answer(sys.stdin.read()), sys.stdout, default=as_json)
