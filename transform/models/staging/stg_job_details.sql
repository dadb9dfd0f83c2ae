-- Only what a detail has beyond the summary: where both have a field, that of the list is newer.
{{ staged('job_details') }}
