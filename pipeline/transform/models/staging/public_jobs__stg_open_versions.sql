-- The keys first, and each history by the time too, because a database then passes over the texts of all
-- other versions. Those of years do not fit in memory.
with in_force as {{ materialized() }} (
    select
        summaries.job_key,
        summaries.dbt_scd_id as summary_scd_id,
        summaries.dbt_valid_from as summary_valid_from,
        details.dbt_scd_id as detail_scd_id,
        details.dbt_valid_from as detail_valid_from,
        coalesce(summaries.salary_period, details.salary_period) as salary_period,
        {{ of_known('greatest', ['summaries.updated_at', 'details.updated_at']) }} as updated_at
    from {{ in_this_file(ref('public_jobs', 'public_jobs__stg_publications')) }} as publications
    inner join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_summary_versions')) }} as summaries
        on
            publications.job_key = summaries.job_key
            and summaries.in_force_until = {{ end_of_time() }}
    left join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_detail_versions')) }} as details
        on
            publications.job_key = details.job_key
            and details.in_force_until = {{ end_of_time() }}
    where publications.is_published
),

details as (
    select history.*
    from in_force
    inner join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_job_detail_history')) }} as history
        on
            in_force.detail_scd_id = history.dbt_scd_id
            and in_force.detail_valid_from = history.dbt_valid_from
)

select
    in_force.job_key,
    {%- for column in fields()['jobs'] %}
    summaries.{{ column }},
    {%- endfor %}
    {%- for column in fields()['job_details'] %}
    details.{{ column }},
    {%- endfor %}
    in_force.salary_period,
    coalesce(details.additional_fields, summaries.additional_fields) as additional_fields,
    in_force.updated_at
from in_force
inner join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_job_history')) }} as summaries
    on
        in_force.summary_scd_id = summaries.dbt_scd_id
        and in_force.summary_valid_from = summaries.dbt_valid_from
left join details on in_force.job_key = details.job_key
