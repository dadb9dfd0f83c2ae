"""What a user selects and maps by name: a name that names nothing is refused.

Otherwise what somebody wanted to leave out would be written, and nobody would notice.
"""

import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from singer_sdk.mapper import RemoveRecordTransform, StreamMap
from singer_sdk.singerlib import Catalog
from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

from tap_public_jobs import schemas
from tap_public_jobs.errors import SetupError
from tap_public_jobs.lines import closest, quoted
from tap_public_jobs.records.columns import OTHERS
from tap_public_jobs.records.naming import column_of

logger = logging.getLogger(__name__)

Json = Any

STREAMS = sorted(path.stem for path in Path(schemas.__file__).parent.glob("*.json"))

# What the map of a stream may have besides columns (Meltano SDK, "Stream Maps").
OPTIONS = ("__alias__", "__else__", "__filter__", "__key_properties__", "__source__")

# What removes a column.
REMOVED = (None, "__NULL__")

# What the metadata of a catalog decide with.
CHOICES = ("selected", "selected-by-default", "inclusion")
INCLUSIONS = ("available", "automatic", "unsupported")

# A column that a map adds, and that is more alike than this to one that exists, is a mistake.
ALIKE = 0.85


def usable_catalog(catalog: dict[str, Json]) -> dict[str, Json]:
    """Return a catalog without deselected streams, and with the tap's names and keys.

    A catalog chooses streams and columns. The SDK would also let it rename a stream, and remove,
    deselect or retype its key; and it stops if `stream_maps` name a stream without a column.

    Raises:
        SetupError: Meltano has made it, by names that do not exist.
        ValueError: It chooses a stream or a column that does not exist, or not clearly.
        Exception: It is no catalog.
    """
    if wrong := _wrong_choices(catalog):
        raise SetupError(" ".join(wrong))
    chosen: dict[str, Json] = {}
    for stream in catalog["streams"]:
        name = stream["tap_stream_id"]
        if name not in STREAMS or name in chosen:
            why = f"it has {name} twice" if name in chosen else _no("stream", name, STREAMS)
            raise ValueError(why)
        stream |= {"stream": name, "key_properties": ["id"]}
        stream["schema"]["properties"]["id"] = {"type": "string"}
        parts = _metadata(stream)
        if ("properties", "id") in parts:
            parts["properties", "id"] = {"inclusion": "automatic"}
        stream["metadata"] = [{"breadcrumb": [*it], "metadata": parts[it]} for it in parts]
        chosen[name] = stream if parts.get((), {}).get("selected") is not False else None
    usable = catalog | {"streams": [*filter(None, chosen.values())]}
    for entry in Catalog.from_dict(usable).streams:
        DEFAULT_JSONSCHEMA_VALIDATOR.check_schema(entry.schema.to_dict())
    return usable


def _metadata(stream: dict[str, Json]) -> dict[tuple[str, ...], dict[str, Json]]:
    """Return the metadata of a stream in a catalog, by breadcrumb.

    Old catalogs have `selected` beside the name of the stream, or in its schema, where the SDK does
    not look.
    """
    name, schema = stream["tap_stream_id"], stream["schema"]
    parts: dict[tuple[str, ...], dict[str, Json]] = {}
    for part in stream.get("metadata") or ():
        is_deselected = _is_deselected(name, part["metadata"])
        if "items" in part["breadcrumb"][2::2] and not is_deselected:
            continue  # an array is written whole
        breadcrumb = _breadcrumb(stream, part["breadcrumb"])
        if parts.setdefault(breadcrumb, part["metadata"]) != part["metadata"]:
            why = f"it has two choices for {'.'.join(breadcrumb[1::2]) or 'all'} of {name}"
            raise ValueError(why)
    old: dict[tuple[str, ...], dict[str, Json]] = {
        breadcrumb: {"selected": False}
        for breadcrumb, place in [((), stream), *_places(schema)]
        if _is_deselected(name, place)
    }
    if old and not parts:  # without metadata all is selected; with some, the stream has to be
        parts[()] = {"selected": True}
    return parts | {it: parts.get(it, {}) | old[it] for it in old}


def _places(
    schema: Mapping[str, Json], breadcrumb: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Json]]]:
    """Yield a schema and what is nested in it, at any depth, with their breadcrumbs."""
    yield breadcrumb, schema
    for name, nested in schema.get("properties", {}).items():
        yield from _places(nested, (*breadcrumb, "properties", name))


def _breadcrumb(stream: Mapping[str, Json], crumbs: Json) -> tuple[str, ...]:
    """Return where metadata belong, which has to be a place in the schema."""
    name, schema = stream["tap_stream_id"], stream["schema"]
    if isinstance(crumbs, str) or len(crumbs) % 2 or any(it != "properties" for it in crumbs[::2]):
        why = f'the breadcrumb {quoted(crumbs)} in {name} is not of the form ["properties", "x"]'
        raise ValueError(why)
    breadcrumb = (*crumbs,)
    if breadcrumb not in dict(_places(schema)):
        why = f"{_no('column', '.'.join(crumbs[1::2]), schema['properties'])} in {name}"
        raise ValueError(why)
    return breadcrumb


def _is_deselected(stream: str, place: Mapping[str, Json]) -> bool:
    """Return whether somebody leaves this out; refuse a choice that would decide nothing."""
    for choice in ("selected", "selected-by-default"):
        if not isinstance(place.get(choice), bool | None):
            why = f"{choice} is {quoted(place[choice])} in {stream}, neither true nor false"
            raise ValueError(why)  # noqa: TRY004  # a TypeError means that the file is no catalog
    if (inclusion := place.get("inclusion", INCLUSIONS[0])) not in INCLUSIONS:
        why = f"inclusion is {quoted(inclusion)} in {stream}, none of {', '.join(INCLUSIONS)}"
        raise ValueError(why)
    for key in place.keys() - {*CHOICES}:
        if meant := closest(key, CHOICES):
            why = f"{quoted(key)} in {stream} decides nothing (did you mean {meant!r}?)"
            raise ValueError(why)
    chosen = place.get("selected", place.get("selected-by-default"))
    return chosen is False or inclusion == "unsupported"


def _wrong_choices(catalog: Mapping[str, Json]) -> list[str]:
    """Describe what extras of Meltano name and no stream has.

    Meltano only warns of it. A pattern with a wildcard may be for what does not exist yet.

    Args:
        catalog: The catalog that Meltano has made of them, with all streams.
    """
    columns = {it["tap_stream_id"]: [*_paths(it["schema"])] for it in catalog["streams"]}
    wrong = []
    for extra, pattern in _choices():
        stream, _, column = pattern.removeprefix("!").partition(".")
        found = [it for it in columns if fnmatch(it, stream)]
        known = [path for it in found for path in columns[it]]
        if not found:
            wrong.append(f"{extra}: {_no('stream', stream, columns)}.")
        elif column and not any(fnmatch(path, column) for path in known):
            no = f"{_no('column', column, known)} in {' or '.join(found)}"
            if re.search(r"[*?\[]", column):
                logger.warning("%s has no effect yet: %s.", pattern, no)
            else:
                wrong.append(f"{extra}: {no}.")
    for stream, rules in (_exported("_METADATA") or {}).items():
        known = [path for it in columns if fnmatch(it, stream) for path in columns[it]]
        for column in {*known} & (rules.keys() if isinstance(rules, dict) else set()):
            if not isinstance(rules[column], dict):
                why = f"{column} of {stream} has no {CHOICES[0]!r} below it, and decides nothing"
                wrong.append(f"metadata: {why}.")
    return wrong


def _choices() -> Iterator[tuple[str, str]]:
    """Yield the extras of Meltano that name streams, and each `stream` or `stream.column` there."""
    for extra in ("select", "select_filter"):
        for pattern in _exported(f"_{extra.upper()}") or ():
            yield extra, str(pattern)
    for extra in ("metadata", "schema"):
        for stream, rules in (_exported(f"_{extra.upper()}") or {}).items():
            yield extra, stream
            # What `schema` names is a column from then on.
            columns = rules if extra == "metadata" and isinstance(rules, dict) else {}
            for column, choice in columns.items():
                if isinstance(choice, dict):
                    yield extra, f"{stream}.{column}"


def _paths(schema: Mapping[str, Json], parent: str = "") -> Iterator[str]:
    """Yield the names of columns, and of what is nested in them, such as `salary.min`."""
    for name, nested in schema.get("properties", {}).items():
        yield f"{parent}{name}"
        yield from _paths(nested, f"{parent}{name}.")


def wrong_maps(maps: Mapping[str, Json], columns: Mapping[str, Collection[str]]) -> list[str]:
    """Describe what `stream_maps` name and no stream has.

    Args:
        maps: The setting.
        columns: Per stream that is written, those that its catalog declares.
    """
    wrong = []
    mapped: dict[str, str] = {}
    for key, rules in maps.items():
        if key.startswith("__"):
            continue  # an option of all streams, or what the SDK refuses
        source = rules.get("__source__", key) if isinstance(rules, dict) else key
        streams = [name for name in STREAMS if fnmatch(name, str(source))]
        if not streams:
            wrong.append(f"stream_maps: {_no('stream', str(source), STREAMS)}.")
        for name in streams if source is key else ():
            if (first := mapped.get(name)) and maps[first]:
                both = f"{first!r} and {key!r} both map {name}, and only the last would count"
                wrong.append(f"stream_maps: {both}: write one map.")
            mapped[name] = key
        known = {column for name in streams for column in columns.get(name, ())}
        if known and isinstance(rules, dict):
            where = " or ".join(streams)
            wrong += [f"stream_maps: {why} in {where}." for why in _wrong_rules(rules, known)]
    for name, value in (_exported("STREAM_MAPS") or {}).items():
        stream, dot, column = name.partition(".")
        if dot and value is None and column not in (maps.get(stream) or {}):
            wrong.append(
                f"stream_maps: Meltano drops the null of {column!r} in {stream}: write __NULL__ in "
                "place of null."
            )
    return wrong


def wrong_columns(columns: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """Describe what is declared within the column of all other fields.

    Flattening, and some targets, would drop what is not: each field that comes later.

    Args:
        columns: Per stream that is written, the schemas of those that its catalog declares.
    """
    others = OTHERS, column_of(OTHERS, "snake_case")
    return [
        f"{name} of {stream} must not declare {', '.join(schema['properties'])}, because all other "
        "fields in it could be lost: declare columns of these names."
        for stream, schemas in columns.items()
        for name, schema in schemas.items()
        if name in others and schema.get("properties")
    ]


def shared_names(maps: Mapping[str, Iterable[StreamMap]]) -> list[str]:
    """Describe what would be written more than once into one table.

    Of two streams, a target would remove the rows of one when the other one is activated. Of one
    stream, a row without what a map leaves out would be beside the whole row.

    Args:
        maps: Those that the SDK has made of `stream_maps`, by stream.
    """
    written: dict[str, list[tuple[str, str]]] = {}
    wrong = []
    for stream, each in maps.items():
        for it in each:
            name: object = it.stream_alias
            if isinstance(it, RemoveRecordTransform):
                continue
            if isinstance(name, str):
                written.setdefault(_table(name), []).append((stream, name))
            else:  # the SDK evaluates an alias, and `list` is a function there
                why = "is an expression, and no name: write another one, or one in more quotes"
                wrong.append(f"stream_maps: the __alias__ of {stream} {why}.")
    for entries in filter(lambda entries: len(entries) > 1, written.values()):
        streams, names = ([*dict.fromkeys(it)] for it in zip(*entries, strict=True))
        what = f"{' and '.join(streams)} would be written as {' and '.join(map(quoted, names))}"
        if len(streams) > 1:
            why = "one table, and rows would be lost: give each its own __alias__"
        else:
            why = "twice, with and without the map: a map of a stream itself has no __source__"
        wrong.append(f"stream_maps: {what}, {why}.")
    return wrong


def _table(stream: str) -> str:
    """Return the table of a stream as most targets name it: `JOBS` and `x-jobs` are `jobs`."""
    return re.sub(r"\W", "_", stream.rpartition("-")[2]).lower()


def _wrong_rules(rules: Mapping[str, Json], columns: Collection[str]) -> Iterator[str]:
    """Describe the names in the map of a stream that are probably meant for another column.

    A map may add a column. But if it is called almost like one that exists, and the map does not
    use that one, it would be written as it is.
    """
    used = {*rules, *re.findall(r"\w+", str([*rules.values()]))}
    for name in rules.keys() - {*columns, *OPTIONS}:
        meant = closest(name, [*columns, *OPTIONS], ALIKE)
        if rules[name] in REMOVED or (meant and meant not in used):
            yield _no("column", name, [*columns, *OPTIONS])
    if re.search(r"\bfake\.", str(rules)) and not find_spec("faker"):
        yield "fake needs the package faker: add it to pip_url of the plugin; it is used"
    if {"__alias__", "__source__"} <= rules.keys():  # the SDK would make a column of it
        yield "a map with __source__ is itself named as its table is: remove __alias__; both are"
    for name in rules:
        if rules[name] == "":
            yield f"{name!r} has no expression; to leave it out, write __NULL__"


def _no(kind: str, name: str, names: Collection[str]) -> str:
    meant = closest(name, names)
    return f"there is no {kind} {quoted(name)}{f' (did you mean {meant!r}?)' if meant else ''}"


def _exported(setting: str) -> Json:
    """Return a setting as Meltano exports it under each name of a plugin; None if it does not."""
    try:
        return json.loads(os.environ.get(f"MELTANO_EXTRACT_{setting}", "null"))
    except ValueError:
        return None
