{{ config(materialized='table') }}
{{ versions(
    ref('public_jobs', 'public_jobs__stg_job_detail_history'), ref('public_jobs', 'public_jobs__stg_detail_contents')
) }}
