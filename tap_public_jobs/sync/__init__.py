"""One run: what the list shows, which details to fetch, and what the next run has to know."""
