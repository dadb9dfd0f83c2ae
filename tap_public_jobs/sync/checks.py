"""Checks of JSON values that are read from a stored state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Json = Any

LATEST = 100_000_000_000
"""Seconds since the epoch. Anything later is a mistake of units."""


def text(value: Json) -> str:
    """Return text that any encoding can carry."""
    if not isinstance(value, str):
        msg = f"{value!r:.50} is not text"
        raise TypeError(msg)
    value.encode()  # refuses half a surrogate pair
    return value


def seconds(value: Json) -> int:
    """Return a time in seconds since the epoch."""
    return number(value, LATEST)


def milliseconds(value: Json) -> int:
    """Return a time in milliseconds since the epoch."""
    return number(value, LATEST * 1000)


def milliseconds_or_none(value: Json) -> int | None:
    """Return a time in milliseconds since the epoch, or None."""
    return None if value is None else milliseconds(value)


def number(value: Json, most: int) -> int:
    """Return a whole number from 0 to `most`."""
    if type(value) is not int or not 0 <= value <= most:
        msg = f"{value!r:.50} is not a number from 0 to {most}"
        raise ValueError(msg)
    return value


def checked(values: list[Json], checks: Sequence[Callable[[Json], Json]]) -> list[Json]:
    """Return values, each of which passes its check."""
    return [check(value) for check, value in zip(checks, values, strict=True)]


ENTRY = (text, milliseconds, milliseconds_or_none, text, seconds)
PERIOD = (text, milliseconds_or_none, milliseconds, milliseconds, milliseconds_or_none)
