"""The Public Jobs API over HTTP: what is requested, and what an answer means."""
