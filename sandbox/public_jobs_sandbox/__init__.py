"""A local server for the Public Jobs API, to try and test the tap without an account."""
