{# BigQuery has no append; without a key, a merge is one. #}
{{ config(
    materialized='incremental',
    incremental_strategy='merge' if target.type == 'bigquery' else 'append',
    on_schema_change='append_new_columns'
) }}
{%- set tables = {
    'summary': ['public_jobs__stg_job_history', fields()['jobs']],
    'detail': ['public_jobs__stg_job_detail_history', fields()['job_details']],
} -%}
{%- set of_both = [
    'organisation', 'job_key', 'id', 'public_id', 'job_title', 'changed_after', 'changed_by',
    'recorded_at', 'version',
] -%}
{%- set pay = "case when changes.field in ('min_salary', 'max_salary') then sent.currency end" -%}

with
{%- if is_incremental() %}
latest as (
    select organisation, max(changed_by) as changed_by
    from {{ this }}
    group by organisation
),
{% endif %}
new_changes as (
    select changes.*
    from {{ ref('public_jobs', 'public_jobs__stg_changes') }} as changes
    {%- if is_incremental() %}
    left join latest using (organisation)
    where latest.changed_by is null or changes.changed_by > latest.changed_by
    {%- endif %}
),

-- One side after the other, because the texts of both do not fit in memory. By the time too, because the
-- database then passes over the texts of older versions.
{%- for side, keys in {'old': ['old_scd_id', 'old_valid_from'], 'new': ['dbt_scd_id', 'dbt_valid_from']}.items() %}
{{ side }}_names as (
    select changes.*, sent.additional_fields, {{ json_names('sent.additional_fields') }} as name
    from new_changes as changes
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as sent
        on changes.{{ keys[0] }} = sent.dbt_scd_id and changes.{{ keys[1] }} = sent.dbt_valid_from
    {{ json_names_rows('sent.additional_fields') }}
    where changes.field = 'additional_fields'
),

{{ side }}_values as (
    {%- for kind, (history, columns) in tables.items() %}
    select
        {%- for column in of_both %}
        changes.{{ column }},
        {%- endfor %}
        changes.dbt_scd_id,
        changes.field,
        '' as name,
        {{ value_of('sent', columns) }} as value,
        {{ number_of('sent', columns) }} as number,
        {{ pay if 'currency' in columns else 'null' }} as currency
    from new_changes as changes
    inner join {{ ref('public_jobs', history) }} as sent
        on changes.{{ keys[0] }} = sent.dbt_scd_id and changes.{{ keys[1] }} = sent.dbt_valid_from
    where changes.kind = '{{ kind }}' and changes.field <> 'additional_fields'
    union all
    {%- endfor %}
    -- A value that does not fit its column is here too, under the name of the column.
    select
        {%- for column in of_both %}
        {{ column }},
        {%- endfor %}
        dbt_scd_id,
        field,
        name,
        {{ text(json_field('additional_fields', 'name')) }} as value,
        null as number,
        null as currency
    from {{ side }}_names
){{ ',' if not loop.last }}
{% endfor %}
select
    coalesce(after.organisation, before.organisation) as organisation,
    coalesce(after.job_key, before.job_key) as job_key,
    coalesce(after.id, before.id) as id,
    coalesce(after.public_id, before.public_id) as public_id,
    coalesce(after.job_title, before.job_title) as job_title,
    case
        when field = 'additional_fields' then 'additional_fields.' || name
        else field
    end as field,
    before.value as old_value,
    after.value as new_value,
    before.number as old_number,
    after.number as new_number,
    before.currency as old_currency,
    after.currency as new_currency,
    coalesce(after.changed_after, before.changed_after) as changed_after,
    coalesce(after.changed_by, before.changed_by) as changed_by,
    coalesce(after.recorded_at, before.recorded_at) as recorded_at,
    coalesce(after.version, before.version) as version
from old_values as before
full outer join new_values as after using (dbt_scd_id, field, name)
where before.value is distinct from after.value
