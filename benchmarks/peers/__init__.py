"""The same extraction with other tools, one script each."""
