"""Measures what only a benchmark can show, and fails where a claim does not hold."""
