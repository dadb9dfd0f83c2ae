"""Measures what only a benchmark can show, and fails if a claim does not hold."""
