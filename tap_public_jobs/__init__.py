"""Singer tap for the Public Jobs API: every published job, whole, at the speed the API allows."""
