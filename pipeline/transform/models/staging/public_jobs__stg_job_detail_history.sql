{{ cleaned(in_this_file(ref('public_jobs', 'public_jobs__job_detail_history')), 'job_details', ['dbt_scd_id', 'dbt_valid_from', 'dbt_valid_to']) }}
