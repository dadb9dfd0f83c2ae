"""Records: what a row of each stream looks like. Knows nothing of HTTP or Singer messages."""
