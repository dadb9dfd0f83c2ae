{%- set columns = fields()['jobs'] | list + fields()['job_details'] | list -%}
{%- set filled = {'min_salary': '> 0', 'max_salary': '> 0', 'knockout_questions': "<> '[]'"} -%}

with counted as (
    select
        organisation,
        {%- for column in columns %}
        count(case when {{ column }} {{ filled.get(column, 'is not null') }} then 1 end) as {{ column }},
        {%- endfor %}
        count(*) as open_jobs
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
    group by organisation
),

-- Those of versions that have counted, so that a listing dates each field.
seen as (
    select
        versions.organisation,
        found.field,
        {{ dbt.listagg('distinct found.type', "', '", 'order by found.type') }} as types,
        min(versions.seen_by) as first_seen_at
    from {{ ref('public_jobs', 'public_jobs__stg_values') }} as found
    inner join {{ ref('public_jobs', 'public_jobs__stg_detail_versions') }} as versions
        on found.dbt_scd_id = versions.dbt_scd_id
    where found.type is not null
    group by versions.organisation, found.field
),

sent as (
    select
        versions.organisation,
        found.field,
        count(distinct case when coalesce(found.value, '{}') <> '{}' then jobs.job_key end) as filled_jobs
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }} as jobs
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_versions') }} as versions
        on jobs.job_key = versions.job_key and jobs.version = versions.version
    inner join {{ ref('public_jobs', 'public_jobs__stg_values') }} as found
        on versions.detail_scd_id = found.dbt_scd_id
    group by versions.organisation, found.field
),

all_fields as (
    {%- for column in columns %}
    select
        organisation, '{{ column }}' as field, true as has_column,
        cast(null as {{ dbt.type_string() }}) as types, {{ column }} as filled_jobs, true as is_sent,
        cast(null as timestamp) as first_seen_at
    from counted
    union all
    {%- endfor %}
    select
        seen.organisation, seen.field, false, seen.types, coalesce(sent.filled_jobs, 0),
        sent.field is not null, seen.first_seen_at
    from seen
    left join sent on seen.organisation = sent.organisation and seen.field = sent.field
)

select
    all_fields.organisation,
    all_fields.field,
    all_fields.has_column,
    all_fields.types,
    all_fields.is_sent,
    all_fields.filled_jobs,
    coalesce(
        cast(round(cast(all_fields.filled_jobs as numeric(18, 6)) / counted.open_jobs, 4) as {{ double() }}), 0
    ) as share_filled,
    all_fields.first_seen_at
from all_fields
left join counted on all_fields.organisation = counted.organisation
