"""HTTP: the client of the Public Jobs API and everything below it. Knows nothing of Singer."""
