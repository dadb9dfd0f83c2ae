"""A MkDocs hook for links from docs/ into the rest of the repository."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

OUTSIDE = re.compile(r"\]\(\.\./([^)]+)\)")


def on_page_markdown(markdown: str, *, config: Mapping[str, Any], **_: object) -> str:
    """Point links to files beside docs/ at the repository: the site has no copy of them."""
    return OUTSIDE.sub(rf"]({config['repo_url']}/blob/main/\1)", markdown)
