{{ config(materialized='view') }}

-- A version ends where that of the summary or of the detail does.
with starts as (
    select distinct job_key, in_force_from
    from (
        select job_key, in_force_from
        from {{ in_this_file(ref('public_jobs', 'public_jobs__stg_summary_versions')) }}
        union all
        select job_key, in_force_from
        from {{ in_this_file(ref('public_jobs', 'public_jobs__stg_detail_versions')) }}
    ) as of_both
),

numbered as (
    select
        job_key,
        row_number() over (partition by job_key order by in_force_from) as version,
        in_force_from,
        coalesce(
            lead(in_force_from) over (partition by job_key order by in_force_from),
            {{ end_of_time() }}
        ) as in_force_until
    from starts
),

versions as (
    select
        summaries.organisation,
        summaries.job_key,
        summaries.id,
        {%- for column in fields()['jobs'] %}
        summaries.{{ column }},
        {%- endfor %}
        {%- for column in fields()['job_details'] %}
        details.{{ column }},
        {%- endfor %}
        coalesce(summary_versions.salary_period, detail_versions.salary_period) as salary_period,
        coalesce(details.additional_fields, summaries.additional_fields) as additional_fields,
        numbered.version,
        numbered.in_force_from,
        numbered.in_force_until,
        {{ of_known('greatest', ['summary_versions.updated_at', 'detail_versions.updated_at']) }}
            as updated_at
    from numbered
    inner join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_summary_versions')) }} as summary_versions
        on
            numbered.job_key = summary_versions.job_key
            and numbered.in_force_from >= summary_versions.in_force_from
            and numbered.in_force_from < summary_versions.in_force_until
    inner join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_job_history')) }} as summaries
        on summary_versions.dbt_scd_id = summaries.dbt_scd_id
    left join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_detail_versions')) }} as detail_versions
        on
            numbered.job_key = detail_versions.job_key
            and numbered.in_force_from >= detail_versions.in_force_from
            and numbered.in_force_from < detail_versions.in_force_until
    left join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_job_detail_history')) }} as details
        on detail_versions.dbt_scd_id = details.dbt_scd_id
)

select
    organisation,
    job_key,
    id,
    {%- for column in fields()['jobs'] %}
    {{ column }},
    {%- endfor %}
    {%- for column in fields()['job_details'] %}
    {{ column }},
    {%- endfor %}
    salary_period,
    additional_fields,
    {{ comparable_salary() }},
    {{- extra_columns() }}
    version,
    in_force_from,
    in_force_until,
    updated_at
from versions
