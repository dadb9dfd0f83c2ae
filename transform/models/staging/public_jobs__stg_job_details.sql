{{ cleaned(ref('public_jobs', 'public_jobs__published_job_details'), 'job_details') }}
