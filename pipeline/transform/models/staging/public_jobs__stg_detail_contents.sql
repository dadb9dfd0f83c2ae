{{ config(
    materialized='incremental',
    unique_key='dbt_scd_id',
    incremental_strategy='merge' if target.type == 'bigquery' else 'delete+insert'
) }}
{{ contents(ref('public_jobs', 'public_jobs__stg_job_detail_history'), 'job_details') }}
