{{ cleaned(ref('public_jobs', 'public_jobs__published_jobs'), 'jobs') }}
