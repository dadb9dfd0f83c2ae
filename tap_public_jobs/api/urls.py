"""URLs: how a job's path is encoded, and which parts of a URL belong in a message."""

from __future__ import annotations

from urllib.parse import quote, urlsplit


def path_segment(public_id: str) -> str:
    """Encode a string as one segment of a path (RFC 3986, section 3.3).

    A segment of only dots would be read as this folder or its parent.
    """
    encoded = quote(public_id, safe="")
    return encoded.replace(".", "%2E") if not encoded.strip(".") else encoded


def path_of(url: str) -> str:
    """Return the path and the query."""
    return urlsplit(url)._replace(scheme="", netloc="").geturl()


def host_of(url: str) -> str:
    """Return the host and the port."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.hostname}:{port}"
