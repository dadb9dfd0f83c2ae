{# BigQuery has no append; without a key, a merge is one. #}
{{ config(
    materialized='incremental',
    incremental_strategy='merge' if target.type == 'bigquery' else 'append',
    on_schema_change='fail'
) }}
{%- set job = '(partition by job_key order by dbt_valid_from)' %}
{%- set tables = {'job_history': fields()['jobs'], 'job_detail_history': fields()['job_details']} -%}

-- Versions are compared by hashes: the texts of all of them together do not fit in memory.
with
{%- if is_incremental() %}
latest as (
    select coalesce(max(recorded_at), cast('0001-01-01' as timestamp)) as recorded_at
    from {{ this }}
),
{% endif %}
{%- for history, columns in tables.items() %}
{{ history }}_compared as {{ materialized() }} (
    select
        dbt_scd_id,
        dbt_valid_from,
        row_number() over {{ job }} as version,
        lag(dbt_scd_id) over {{ job }} as old_scd_id
        {%- for column, group in columns.items() %}
        {%- set value = column if group == 'number' else 'md5(' ~ column ~ ')' %},
        {{ value }} is distinct from lag({{ value }}) over {{ job }} as has_other_{{ column }}
        {%- endfor %}
        {%- if history == 'job_detail_history' %},
        md5(additional_fields) is distinct from lag(md5(additional_fields)) over {{ job }}
            as has_other_additional_fields
        {%- endif %}
    from {{ ref('stg_' ~ history) }}
    {%- if is_incremental() %}
    where
        job_key in (
            select versions.job_key
            from {{ ref('stg_' ~ history) }} as versions
            inner join latest on versions.dbt_valid_from > latest.recorded_at
        )
    {%- endif %}
),

{{ history }}_new as (
    select compared.*
    from {{ history }}_compared as compared
    {{ 'inner join latest on compared.dbt_valid_from > latest.recorded_at' if is_incremental() }}
    where compared.old_scd_id is not null
),

{{ history }}_changed as (
    {%- for column in columns %}
    select dbt_scd_id, old_scd_id, version, '{{ column }}' as field
    from {{ history }}_new
    where has_other_{{ column }}
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),
{% endfor %}
-- One row for each field without a column, before and after a change of any of them.
undeclared_names as (
    select
        after.organisation,
        after.job_key,
        after.id,
        after.listed_at,
        after.dbt_valid_from as recorded_at,
        compared.version,
        before.additional_fields as old_fields,
        after.additional_fields as new_fields,
        {{ json_names('before.additional_fields', 'after.additional_fields') }} as field
    from job_detail_history_new as compared
    inner join {{ ref('stg_job_detail_history') }} as after using (dbt_scd_id)
    inner join {{ ref('stg_job_detail_history') }} as before
        on compared.old_scd_id = before.dbt_scd_id
    {{ json_names_rows('before.additional_fields', 'after.additional_fields') }}
    where compared.has_other_additional_fields
),

undeclared as (
    select
        organisation, job_key, id, listed_at, recorded_at, version, field,
        {{ text(json_as_text(json_value('old_fields', 'field'))) }} as old_value,
        {{ text(json_as_text(json_value('new_fields', 'field'))) }} as new_value
    from undeclared_names
),

changes as (
    {%- for history, columns in tables.items() %}
    select
        after.organisation, after.job_key, after.id, after.listed_at,
        after.dbt_valid_from as recorded_at, changed.version,
        {{ history == 'job_history' }} as is_summary,
        changed.field,
        {{ value_of('before', columns) }} as old_value,
        {{ value_of('after', columns) }} as new_value,
        {{ number_of('before', columns) }} as old_number,
        {{ number_of('after', columns) }} as new_number,
        {%- set pay = "case when changed.field in ('min_salary', 'max_salary') then " %}
        {{ pay ~ 'before.currency end' if 'currency' in columns else 'null' }} as old_currency,
        {{ pay ~ 'after.currency end' if 'currency' in columns else 'null' }} as new_currency
    from {{ history }}_changed as changed
    inner join {{ ref('stg_' ~ history) }} as after using (dbt_scd_id)
    inner join {{ ref('stg_' ~ history) }} as before on changed.old_scd_id = before.dbt_scd_id
    union all
    {%- endfor %}
    select
        organisation, job_key, id, listed_at, recorded_at, version, false as is_summary,
        -- A value that does not fit its column is here too, under the name of the column.
        'additional_fields.' || field as field,
        old_value,
        new_value,
        null as old_number,
        null as new_number,
        null as old_currency,
        null as new_currency
    from undeclared
    where old_value is distinct from new_value
),

periods as (
    select
        job_key,
        opened_by,
        coalesce(closed_by, cast('9999-12-31' as timestamp)) as closed_by,
        lag(closed_after) over (partition by job_key order by period) as last_seen_before
    from {{ ref('publication_periods') }}
)

select
    changes.organisation,
    changes.job_key,
    changes.id,
    versions.public_id,
    versions.job_title,
    changes.field,
    changes.old_value,
    changes.new_value,
    changes.old_number,
    changes.new_number,
    changes.old_currency,
    changes.new_currency,
    -- A job that was published again may have changed at any time since it was last seen.
    case
        when not changes.is_summary then null
        when periods.opened_by > listings.previous_listed_at then periods.last_seen_before
        else listings.previous_listed_at
    end as changed_after,
    changes.listed_at as changed_by,
    cast(changes.recorded_at as timestamp) as recorded_at,
    cast(changes.version as bigint) as version
from changes
left join {{ ref('listings') }} as listings using (organisation, listed_at)
left join periods
    on
        changes.job_key = periods.job_key
        and changes.listed_at >= periods.opened_by
        and changes.listed_at < periods.closed_by
left join {{ ref('job_versions') }} as versions
    on
        changes.job_key = versions.job_key
        and changes.listed_at >= versions.in_force_from
        and changes.listed_at < versions.in_force_until
