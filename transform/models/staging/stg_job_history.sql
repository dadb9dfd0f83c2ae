{{ cleaned(ref('job_history'), 'jobs', ['dbt_scd_id', 'dbt_valid_from', 'dbt_valid_to']) }}
