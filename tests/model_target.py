"""A model of a Singer target: what warehouses of each kind hold after the same messages.

The terms are those of the targets built on Meltano's SDK:

| a warehouse that | `load_method` | `removal` |
| --- | --- | --- |
| updates rows, and deletes those of older versions | `upsert` (default) | `hard` (default) |
| updates rows, and marks those of older versions | `upsert` | `soft` |
| updates rows, and ignores ACTIVATE_VERSION | `upsert` | `none` |
| empties a table at its SCHEMA | `overwrite` | any |
| keeps every record | `append-only` | any |
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal

Json = Any
Row = dict[str, Json]
LoadMethod = Literal["append-only", "upsert", "overwrite"]
Removal = Literal["none", "hard", "soft"]

# The column that a soft delete sets to true.
DELETED = "deleted"


class ModelTarget:
    """Reads Singer messages, run after run.

    A record that its SCHEMA does not allow fails the test, and so does an unknown message.

    Args:
        load_method: What a run does with the rows that are there already.
        removal: What ACTIVATE_VERSION does with the rows of older versions.

    Attributes:
        schemas: Each SCHEMA so far, by stream.
    """

    def __init__(self, load_method: LoadMethod = "upsert", removal: Removal = "hard") -> None:
        self.schemas: dict[str, list[Json]] = defaultdict(list)
        self._load_method = load_method
        self._removal = removal
        self._keys: dict[str, list[str]] = {}
        # By primary key, or by the number of the record if every record is kept.
        self._tables: dict[str, dict[Json, tuple[int, Row]]] = defaultdict(dict)
        self._records = 0

    def read(self, messages: Iterable[str | Mapping[str, Json]]) -> None:
        """Load messages: lines of JSON, or parsed ones."""
        for it in messages:
            message = json.loads(it, parse_float=Decimal) if isinstance(it, str) else it
            match message["type"]:
                case "SCHEMA":
                    self._begin(message["stream"], message["schema"], message["key_properties"])
                case "RECORD":
                    self._write(message["stream"], message["record"], message.get("version") or 0)
                case "ACTIVATE_VERSION":
                    self._activate(message["stream"], message["version"])
                case "STATE":
                    pass
                case other:
                    raise AssertionError(other)

    @property
    def rows(self) -> dict[str, dict[str, Row]]:
        """The rows by stream and id; of several with the same id, the one written last."""
        tables = {stream: {row["id"]: row for row in self.all(stream)} for stream in self._tables}
        return defaultdict(dict, tables)

    def all(self, stream: str) -> list[Row]:
        """Return every row of a stream, in the order of writing."""
        return [row for _, row in self._tables[stream].values()]

    def published(self) -> set[str]:
        """Return the ids of the jobs that are published now."""
        return published_now(self.rows["job_publications"].values())

    def _begin(self, stream: str, schema: Json, keys: list[str]) -> None:
        self.schemas[stream].append(schema)
        self._keys[stream] = keys
        table = self._tables[stream]
        if self._load_method == "overwrite":
            table.clear()

    def _write(self, stream: str, row: Row, version: int) -> None:
        assert row.keys() <= self.schemas[stream][-1]["properties"].keys()
        self._records += 1
        key: Json = tuple(row[name] for name in self._keys[stream])
        if self._load_method == "append-only":
            key = self._records
        table = self._tables[stream]
        table.pop(key, None)  # a row that is updated counts as written last
        table[key] = version, row

    def _activate(self, stream: str, version: int) -> None:
        table = self._tables[stream]
        for key in [key for key, (older, _) in table.items() if older < version]:
            if self._removal == "hard":
                del table[key]
            elif self._removal == "soft":
                table[key] = table[key][0], table[key][1] | {DELETED: True}


def plain(row: Row) -> Row:
    """Name columns in lower case without underscores, whatever the tap and a target named them."""
    return {name.replace("_", "").lower(): value for name, value in row.items()}


def published_now(publications: Iterable[Row]) -> set[str]:
    """Return the ids of the published jobs, by the rule that holds on every target.

    Args:
        publications: One row per job of `job_publications`, however its columns are named.
    """
    rows = [plain(row) for row in publications]
    latest = max((row["lastseenat"] for row in rows), default=None)
    published = [row for row in rows if not row.get("unpublishedat")]  # a CSV file has no null
    return {row["id"] for row in published if row["lastseenat"] == latest}
