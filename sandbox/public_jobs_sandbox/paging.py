"""The query parameters of the list operation (*List published jobs*)."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self, TypeVar

from public_jobs_sandbox.options import Options

Item = TypeVar("Item")

DEFAULT_PAGE_SIZE = 20
MAXIMUM_PAGE_SIZE = 100
LONGEST_NUMBER = 1000


class OutOfBoundsError(ValueError):
    """A parameter is out of bounds, or not a whole number."""


class Page(NamedTuple):
    """The requested page: its 1-based `number`, and its `size` in items."""

    number: int
    size: int

    @classmethod
    def from_query(cls, query: Mapping[str, str], options: Options) -> Self:
        """Read page and pageSize.

        Raises:
            OutOfBoundsError: If one of them is out of bounds, and the options say to reject it.
        """
        number = _read(query, "page", default=1, maximum=None, options=options)
        size = _read(
            query,
            "pageSize",
            default=DEFAULT_PAGE_SIZE,
            maximum=MAXIMUM_PAGE_SIZE,
            options=options,
        )
        return cls(number, min(size, options.max_page_size))

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items on this page."""
        start = (self.number - 1) * self.size
        return items[start : start + self.size]


def _read(
    query: Mapping[str, str], name: str, *, default: int, maximum: int | None, options: Options
) -> int:
    text = query.get(name)
    if text is None:
        return default
    # int() also accepts digits of other scripts, and rejects very long numbers.
    if re.fullmatch(rf"-?[0-9]{{1,{LONGEST_NUMBER}}}", text):
        value = int(text)
        bounded = max(1, value) if maximum is None else min(max(1, value), maximum)
        if value == bounded or options.out_of_bounds == "clamp":
            return bounded
    elif options.out_of_bounds == "clamp":
        return default
    bounds = "at least 1" if maximum is None else f"between 1 and {maximum}"
    message = f"{name} must be a whole number {bounds}"
    raise OutOfBoundsError(message)
