{{ cleaned(ref('raw_jobs'), 'jobs') }}
