{{ open_jobs_at_end_of('month') }}
