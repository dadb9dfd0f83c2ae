"""target-snowflake, or a query, on fakesnow: `fake_snowflake.py [--config FILE] < STDIN`.

What fakesnow cannot do, and how this works around it:

- A MERGE from a staged file: the lines of the file become a table, and so does the target's own
  SELECT from them, with its casts and its choice of the last row of a key.
- `REMOVE` and `DROP FILE FORMAT`: nothing is done.
- A MERGE in a session without a schema: each session has one.
- Two statements at once: one stream is loaded after the other.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from decimal import Decimal
from typing import Any
from urllib.parse import urlparse

import fakesnow
import snowflake.connector
from sqlalchemy import TextClause, text
from target_snowflake.connector import SnowflakeConnector
from target_snowflake.sinks import SnowflakeSink
from target_snowflake.target import TargetSnowflake

DATABASE = {"database": "WAREHOUSE", "schema": "PUBLIC_JOBS"}


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

    def _get_merge_from_stage_statement(self, **names: Any) -> tuple[TextClause, dict[str, Any]]:
        statement, arguments = super()._get_merge_from_stage_statement(**names)
        before, select, after = re.split(r"using \((.*)\) s (?=on )", statement.text)
        select = re.sub(r"'@~/[^']*'\(file_format => .*?\)(?= QUALIFY)", "lines", select)
        select = select.replace("$1:", "line:").replace("SEQ8()", "number")
        with self._connect() as connection, connection.begin():
            connection.execute(text(f"create or replace table s as {select}"))
        return text(f"{before} using s {after}"), arguments


def answer(query: str) -> list[dict[str, Any]]:
    with snowflake.connector.connect(**DATABASE) as connection:
        cursor = connection.cursor(snowflake.connector.DictCursor)
        return [*cursor.execute(query).fetchall()]


def as_json(value: Any) -> float | str:
    return float(value) if isinstance(value, Decimal) else str(value)


SnowflakeSink.connector_class = Connector
TargetSnowflake.max_parallelism = 1

if __name__ == "__main__":
    unknown = ["^remove ", "^drop file format "]
    with fakesnow.patch(db_path=os.environ["FAKESNOW"], nop_regexes=unknown):
        if len(sys.argv) > 1:
            TargetSnowflake.cli()
        else:
            rows = answer(sys.stdin.read())
            json.dump(rows, sys.stdout, default=as_json)
