{{ cleaned(in_this_file(ref('public_jobs', 'public_jobs__job_history')), 'jobs', ['dbt_scd_id', 'dbt_valid_from', 'dbt_valid_to']) }}
