{{ config(indexes=[{'columns': ['job_key']}] if target.type == 'postgres' else []) }}
-- The open ones of jobs_ever, with their texts. A view would look for a word in the texts of all versions.
select
    jobs.*,
    texts.role_overview,
    texts.knockout_questions,
    texts.additional_fields
from {{ ref('public_jobs', 'public_jobs__jobs_ever') }} as jobs
left join {{ ref('public_jobs', 'public_jobs__stg_job_versions') }} as versions
    on jobs.job_key = versions.job_key and jobs.version = versions.version
left join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as texts
    on versions.detail_scd_id = texts.dbt_scd_id and versions.detail_valid_from = texts.dbt_valid_from
where jobs.is_open
