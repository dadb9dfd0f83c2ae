{{ config(indexes=[{'columns': ['job_key']}] if target.type == 'postgres' else []) }}
-- The open ones of jobs_ever, with their texts. A view would look for a word in the texts of all versions.
with versions as {{ materialized() }} (
    select versions.job_key, versions.detail_scd_id, versions.detail_valid_from
    from {{ ref('public_jobs', 'public_jobs__stg_job_versions') }} as versions
    inner join {{ ref('public_jobs', 'public_jobs__jobs_ever') }} as jobs
        on versions.job_key = jobs.job_key and versions.version = jobs.version
    where jobs.is_open
),

-- An inner join, because DuckDB passes over the texts of all other versions only in one.
texts as (
    select versions.job_key, history.role_overview, history.knockout_questions, history.additional_fields
    from versions
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as history
        on versions.detail_scd_id = history.dbt_scd_id and versions.detail_valid_from = history.dbt_valid_from
)

select
    jobs.*,
    texts.role_overview,
    texts.knockout_questions,
    texts.additional_fields
from {{ ref('public_jobs', 'public_jobs__jobs_ever') }} as jobs
left join texts on jobs.job_key = texts.job_key
where jobs.is_open
