{{ config(materialized='table') }}
{{ versions(
    ref('public_jobs', 'public_jobs__stg_job_history'), ref('public_jobs', 'public_jobs__stg_summary_contents')
) }}
