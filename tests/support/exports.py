"""What another system has that takes, each night, the rows that are new since its last export."""

from datetime import datetime

from e2e.stores import Row
from support.portal import Builds

KEYS = {
    "job_events": "event_key",
    "job_periods": "period_key",
    "job_spells": "spell_key",
    "job_versions": "version_key",
    "jobs_ever": "job_key",
    "field_value_spells": "value_key",
}
# They grow with each listing, as their descriptions say, and are no news.
OF_OPEN_JOBS = {
    *("days_open_at_least", "days_open_at_most", "days_open_in_all"),
    *("surely_open_until", "last_seen_at"),
}
ALWAYS = {"department_median_days"}


class Exports:
    """Rows of the tables of history, merged by key.

    Attributes:
        sizes: How many rows each export had.
    """

    def __init__(self, warehouse: Builds) -> None:
        self._warehouse = warehouse
        self._rows: dict[str, dict[str, Row]] = {table: {} for table in KEYS}
        self._last = datetime.min  # noqa: DTZ901
        self.sizes: list[int] = []

    def take(self) -> None:
        """Take what is new, and note the latest time in it."""
        latest, size = self._last, 0
        for table, key in KEYS.items():
            new = f"analytics.{table} where updated_at > timestamp '{self._last}'"
            rows = self._warehouse.rows(new)
            self._rows[table] |= {row[key]: row for row in rows}
            latest, size = max([latest, *(it["updated_at"] for it in rows)]), size + len(rows)
        self._last = latest
        self.sizes.append(size)

    def merged(self, table: str) -> dict[str, Row]:
        """What the other system has."""
        return {key: lasting(row) for key, row in self._rows[table].items()}

    def there(self, table: str) -> dict[str, Row]:
        """What the table has."""
        rows = self._warehouse.rows(f"analytics.{table}")
        return {row[KEYS[table]]: lasting(row) for row in rows}


def lasting(row: Row) -> Row:
    """A row without what grows."""
    growing = ALWAYS | (OF_OPEN_JOBS if row.get("is_open") else set())
    return {name: value for name, value in row.items() if name not in growing}
