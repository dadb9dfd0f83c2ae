-- Only what a detail has beyond the summary: where both have a field, that of the list is newer.
{{ published('job_details') }}
