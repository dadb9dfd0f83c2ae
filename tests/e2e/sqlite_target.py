"""A target of a few lines on the SDK's own SQL classes: each way to load, each way to delete.

Targets for Snowflake, SQL Server and others are built on the same classes.
"""

import datetime as dt
import sqlite3
from decimal import Decimal
from typing import Any

from singer_sdk import typing as th
from singer_sdk.sql import SQLConnector, SQLSink, SQLTarget
from typing_extensions import override


class SQLiteConnector(SQLConnector):
    """Opens the file."""

    @override
    def get_sqlalchemy_url(self, config: dict[str, Any]) -> str:
        return f"sqlite:///{config['file']}"


class SQLiteSink(SQLSink[SQLiteConnector]):
    """Replaces rows as a whole, so that a column that a record leaves out becomes null."""

    connector_class = SQLiteConnector

    @property
    @override
    def key_properties(self) -> list[str]:
        is_appended = self.config["load_method"] == "append-only"
        return [] if is_appended else list(super().key_properties)

    @override
    def generate_insert_statement(self, full_table_name: Any, schema: dict[str, Any]) -> Any:
        insert: Any = super().generate_insert_statement(full_table_name, schema)
        return insert.prefix_with("or replace")


class SQLiteTarget(SQLTarget):
    """Obeys `load_method` and `hard_delete`."""

    name = "target-sqlite"
    default_sink_class = SQLiteSink
    config_jsonschema = th.PropertiesList(
        th.Property("file", th.StringType, required=True)
    ).to_dict()


if __name__ == "__main__":
    sqlite3.register_adapter(Decimal, str)
    sqlite3.register_adapter(dt.datetime, dt.datetime.isoformat)
    SQLiteTarget.cli()
