"""The same extraction as other tools do it, one script each."""
