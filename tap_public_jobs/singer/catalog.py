"""A catalog as the streams need it: with the tap's names and keys."""

from pathlib import Path
from typing import Any

from singer_sdk.singerlib import Catalog
from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

from tap_public_jobs import schemas
from tap_public_jobs.lines import quoted

Json = Any

STREAMS = sorted(path.stem for path in Path(schemas.__file__).parent.glob("*.json"))


def usable_catalog(catalog: dict[str, Json]) -> dict[str, Json]:
    """Return a catalog without deselected streams, and with the tap's names and keys.

    A catalog chooses streams and columns. The SDK would also let it rename a stream, and remove,
    deselect or retype its key; and it stops if `stream_maps` name a stream without a column.

    Raises:
        Exception: It is no catalog of this tap.
    """
    chosen = []
    for stream in catalog["streams"]:
        name = stream["tap_stream_id"]
        if name not in STREAMS:
            msg = f"there is no stream {quoted(name)}"
            raise ValueError(msg)
        stream |= {"stream": name, "key_properties": ["id"]}
        stream["schema"]["properties"]["id"] = {"type": "string"}
        parts = {tuple(it["breadcrumb"]): it for it in stream.get("metadata") or ()}
        parts.get(("properties", "id"), {})["metadata"] = {"inclusion": "automatic"}
        if parts.get((), {}).get("metadata", {}).get("selected") is not False:
            chosen.append(stream)
    usable = catalog | {"streams": chosen}
    for entry in Catalog.from_dict(usable).streams:
        DEFAULT_JSONSCHEMA_VALIDATOR.check_schema(entry.schema.to_dict())
    return usable
