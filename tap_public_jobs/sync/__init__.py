"""Decisions: what is known from earlier runs, and what this run has to fetch. Does no I/O."""
