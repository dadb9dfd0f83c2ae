"""The Public Jobs API, as its specification has it.

This package knows the API's two operations, its headers, and what its statuses mean for a run.
It promises `sync` pages and details that have no withheld field, or an error that says what that
means for the tables and what to do.
The proof is in `tests/api`: the client against the specification as a server, and against a server
of raw bytes. `tests/test_selection.py` has the withheld fields.
"""
