"""A catalog as the streams need it: with the tap's names and keys."""

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

from singer_sdk.singerlib import Catalog
from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

from tap_public_jobs.lines import closest, quoted

Json = Any

# The columns of each stream's key, and their schemas.
Keys = Mapping[str, Mapping[str, Json]]


def usable_catalog(catalog: dict[str, Json], keys: Keys) -> dict[str, Json]:
    """Return a catalog without deselected streams, and with the tap's names and keys.

    A catalog chooses streams and columns. The SDK would also let it rename a stream, and remove,
    deselect or retype its key; and it stops if `stream_maps` name a stream without a column.

    Raises:
        Exception: It is no catalog of this tap.
    """
    chosen = []
    for stream in catalog["streams"]:
        name = stream["tap_stream_id"]
        if name not in keys:
            msg = f"there is no stream {quoted(name)}"
            raise ValueError(msg)
        stream |= {"stream": name, "key_properties": [*keys[name]]}
        stream["schema"]["properties"] |= keys[name]
        parts = {tuple(it["breadcrumb"]): it for it in stream.get("metadata") or ()}
        for column in keys[name]:
            parts.get(("properties", column), {})["metadata"] = {"inclusion": "automatic"}
        if parts.get((), {}).get("metadata", {}).get("selected") is not False:
            chosen.append(stream)
    usable = catalog | {"streams": chosen}
    for entry in Catalog.from_dict(usable).streams:
        DEFAULT_JSONSCHEMA_VALIDATOR.check_schema(entry.schema.to_dict())
    return usable


def wrong_maps(maps: Mapping[str, Json], columns: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Say what `stream_maps` name that is not there; the SDK would load what should be left out.

    Args:
        maps: The setting.
        columns: By stream; none if it is deselected.
    """
    for name, rules in maps.items():
        options = rules if isinstance(rules, dict) else {}
        source = f"{options.get('__source__', name)}"
        streams = [it for it in columns if fnmatch(it, source)]
        if not streams and name != "__else__":
            yield f"stream_maps: there is {_no('stream', source, columns)}."
        declared = {column for stream in streams for column in columns[stream]}
        for column, rule in options.items() if declared else ():
            is_removed = rule in (None, "__NULL__") and not column.startswith("__")
            if is_removed and column not in declared:
                yield f"stream_maps: {source} has {_no('column', column, declared)}."


def _no(kind: str, name: str, names: Collection[str]) -> str:
    meant = closest(name, names)
    return f"no {kind} {quoted(name)}{f', but {meant}' if meant else ''}"
