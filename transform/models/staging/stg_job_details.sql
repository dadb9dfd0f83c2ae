{{ cleaned(ref('raw_job_details'), 'job_details') }}
