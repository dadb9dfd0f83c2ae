{{ config(materialized='table') }}
{%- set summary_versions = ref('public_jobs', 'public_jobs__stg_summary_versions') -%}
{%- set detail_versions = ref('public_jobs', 'public_jobs__stg_detail_versions') %}

-- Each version of a job, summary and detail together, without its long texts: all tables are made from
-- these rows, and find texts by the keys of the histories. A version ends where that of the summary or of
-- the detail does.
with starts as (
    select distinct job_key, in_force_from
    from (
        select job_key, in_force_from from {{ summary_versions }}
        union all
        select job_key, in_force_from from {{ detail_versions }}
    ) as of_both
),

numbered as (
    select
        job_key,
        row_number() over (partition by job_key order by in_force_from) as version,
        in_force_from,
        coalesce(lead(in_force_from) over (partition by job_key order by in_force_from), {{ end_of_time() }})
            as in_force_until
    from starts
),

versions as (
    select
        summaries.organisation,
        summaries.job_key,
        summaries.id,
        {{- of('summaries', fields()['jobs']) }}
        {{- of('details', ['years_experience', 'primary_language', 'education_level']) }}
        {{- 'details.additional_fields,' if extra_fields() }}
        coalesce(s.salary_period, d.salary_period) as salary_period,
        numbered.version,
        numbered.in_force_from,
        numbered.in_force_until,
        s.dbt_scd_id as summary_scd_id,
        d.dbt_scd_id as detail_scd_id,
        d.dbt_valid_from as detail_valid_from,
        d.updated_at as detail_recorded_at,
        {{ of_known('greatest', ['s.updated_at', 'd.updated_at']) }} as recorded_at
    from numbered
    inner join {{ summary_versions }} as s
        on
            numbered.job_key = s.job_key
            and numbered.in_force_from >= s.in_force_from
            and numbered.in_force_from < s.in_force_until
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_history') }} as summaries on s.dbt_scd_id = summaries.dbt_scd_id
    left join {{ detail_versions }} as d
        on
            numbered.job_key = d.job_key
            and numbered.in_force_from >= d.in_force_from
            and numbered.in_force_from < d.in_force_until
    left join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as details
        on d.dbt_scd_id = details.dbt_scd_id and d.dbt_valid_from = details.dbt_valid_from
),

compared as (
    select *, {{ comparable_salary() }} from versions
)

select
    organisation,
    job_key,
    id,
    version,
    in_force_from,
    in_force_until,
    {{- of('compared', ['public_id'] + short_columns() + pay_columns()[:-1] + ['job_url', 'apply_url']) }}
    {{ pay_as_text('') }} as pay,
    {{- extra_columns() }}
    summary_scd_id,
    detail_scd_id,
    detail_valid_from,
    detail_recorded_at,
    recorded_at,
    -- A row changes when the next version ends it, so this moves then, too.
    {{ of_known('greatest', ['recorded_at', 'lead(recorded_at) over (partition by job_key order by version)']) }} as updated_at
from compared
