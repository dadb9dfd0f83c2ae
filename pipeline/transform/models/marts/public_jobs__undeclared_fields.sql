with versions as (
    select organisation, job_key, additional_fields
    from {{ ref('public_jobs', 'public_jobs__stg_job_history') }}
    where additional_fields is not null and dbt_valid_to is null
    union all
    select organisation, job_key, additional_fields
    from {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }}
    where additional_fields is not null and dbt_valid_to is null
),

named as (
    select versions.*, {{ json_names('additional_fields') }} as field
    from versions
    {{ json_names_rows('additional_fields') }}
),

valued as (
    select *, {{ json_value('additional_fields', 'field') }} as value
    from named
),

sent as (
    select
        organisation,
        field,
        count(distinct case
            when coalesce({{ json_as_text('value') }}, '') not in ('', '[]', '{}') then job_key
        end) as filled_jobs
    from valued
    group by organisation, field
),

open_jobs as (
    select organisation, count(*) as jobs
    from {{ ref('public_jobs', 'public_jobs__stg_publications') }}
    where is_published
    group by organisation
),

{% set ignored = ignored_fields() -%}
fields as (
    select
        organisation,
        field,
        {{ dbt.listagg('distinct type', "', '", 'order by type') }} as types,
        min(first_seen_at) as first_seen_at
    from {{ ref('public_jobs', 'public_jobs__stg_field_types') }}
    {%- if ignored %}
    where field not in (
        {%- for name in ignored %}{{ dbt.string_literal(dbt.escape_single_quotes(name)) }}{{ ', ' if not loop.last }}{% endfor -%}
    )
    {%- endif %}
    group by organisation, field
)

select
    fields.organisation,
    fields.field,
    fields.types,
    coalesce(sent.filled_jobs, 0) as filled_jobs,
    coalesce(
        cast(round(cast(sent.filled_jobs as numeric(18, 6)) / open_jobs.jobs, 4) as {{ double() }}), 0
    )
        as share_filled,
    fields.first_seen_at,
    sent.field is not null as is_sent
from fields
left join sent using (organisation, field)
left join open_jobs using (organisation)
