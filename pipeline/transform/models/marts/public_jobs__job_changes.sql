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
{%- set by_build = '(partition by history.job_key order by history.dbt_valid_from)' %}

-- Versions are compared by hashes: the texts of all of them together do not fit in memory.
with
{%- if is_incremental() %}
latest as (
    select organisation, max(changed_by) as changed_by
    from {{ this }}
    group by organisation
),
{% endif %}
{%- for kind, (history, columns) in tables.items() %}
{{ kind }}_new as {{ materialized() }} (
    select versions.*
    from {{ ref('public_jobs', 'public_jobs__stg_' ~ kind ~ '_versions') }} as versions
    {{ 'left join latest using (organisation)' if is_incremental() }}
    where
        versions.old_scd_id is not null
        {{ 'and (latest.changed_by is null or versions.seen_by > latest.changed_by)' if is_incremental() }}
),

{{ kind }}_hashed as (
    select
        dbt_scd_id,
        {%- for column, group in columns.items() %}
        {{ column if group == 'number' else 'md5(' ~ column ~ ')' }} as {{ column }},
        {%- endfor %}
        md5(additional_fields) as additional_fields
    from {{ ref('public_jobs', history) }}
    {%- if is_incremental() %}
    where
        dbt_scd_id in (select dbt_scd_id from {{ kind }}_new)
        or dbt_scd_id in (select old_scd_id from {{ kind }}_new)
    {%- endif %}
),

{{ kind }}_compared as {{ materialized() }} (
    select
        versions.*
        {%- for column in columns.keys() | list + ['additional_fields'] %},
        after.{{ column }} is distinct from before.{{ column }} as has_other_{{ column }}
        {%- endfor %}
    from {{ kind }}_new as versions
    inner join {{ kind }}_hashed as after on versions.dbt_scd_id = after.dbt_scd_id
    inner join {{ kind }}_hashed as before on versions.old_scd_id = before.dbt_scd_id
),

{{ kind }}_changed as (
    select compared.*, fields.field
    from {{ kind }}_compared as compared
    cross join (
        {%- for column in columns %}
        select '{{ column }}' as field {{ 'union all' if not loop.last }}
        {%- endfor %}
    ) as fields
    where
        case fields.field
            {%- for column in columns %}
            when '{{ column }}' then compared.has_other_{{ column }}
            {%- endfor %}
        end
),
{% endfor %}
-- One row for each field without a column, before and after a change of any of them.
undeclared_names as (
    select
        after.organisation,
        after.job_key,
        after.id,
        compared.seen_by,
        compared.updated_at,
        compared.version,
        before.additional_fields as old_fields,
        after.additional_fields as new_fields,
        {{ json_names('before.additional_fields', 'after.additional_fields') }} as field
    from detail_compared as compared
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as after using (dbt_scd_id)
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as before
        on compared.old_scd_id = before.dbt_scd_id
    {{ json_names_rows('before.additional_fields', 'after.additional_fields') }}
    where compared.has_other_additional_fields
),

undeclared as (
    select
        organisation, job_key, id, seen_by, updated_at, version, field,
        {{ text(json_as_text(json_value('old_fields', 'field'))) }} as old_value,
        {{ text(json_as_text(json_value('new_fields', 'field'))) }} as new_value
    from undeclared_names
),

changes as (
    {%- for kind, (history, columns) in tables.items() %}
    select
        after.organisation, after.job_key, after.id, changed.seen_by, changed.updated_at,
        changed.version,
        {{ kind == 'summary' }} as is_summary,
        changed.field,
        {{ value_of('before', columns) }} as old_value,
        {{ value_of('after', columns) }} as new_value,
        {{ number_of('before', columns) }} as old_number,
        {{ number_of('after', columns) }} as new_number,
        {%- set pay = "case when changed.field in ('min_salary', 'max_salary') then " %}
        {{ pay ~ 'before.currency end' if 'currency' in columns else 'null' }} as old_currency,
        {{ pay ~ 'after.currency end' if 'currency' in columns else 'null' }} as new_currency
    from {{ kind }}_changed as changed
    inner join {{ ref('public_jobs', history) }} as after using (dbt_scd_id)
    inner join {{ ref('public_jobs', history) }} as before
        on changed.old_scd_id = before.dbt_scd_id
    union all
    {%- endfor %}
    select
        organisation, job_key, id, seen_by, updated_at, version, false as is_summary,
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

shown as (
    select
        history.job_key,
        history.listed_at,
        history.dbt_valid_from,
        history.is_published,
        lag(history.is_published) over {{ by_build }} as was_published,
        lag(history.listed_at) over {{ by_build }} as published_by,
        lag(history.dbt_valid_to) over {{ by_build }} < history.dbt_valid_from as was_removed,
        listings.previous_listed_at
    from {{ ref('public_jobs', 'public_jobs__publication_history') }} as history
    left join {{ ref('public_jobs', 'public_jobs__listings') }} as listings
        on history.organisation = listings.organisation and history.listed_at = listings.listed_at
),

-- Jobs that the listing of the build before did not show, and the last one of a build that did.
returned as (
    select job_key, listed_at, shown_by
    from (
        select
            job_key,
            listed_at,
            is_published and (was_removed or not was_published) as is_back,
            max(
                case
                    when was_published and was_removed then published_by
                    when was_published and not is_published then previous_listed_at
                end
            ) over (partition by job_key order by dbt_valid_from rows unbounded preceding)
                as shown_by
        from shown
    ) as dated
    where is_back
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
    -- No listing bounds a change unless a build saw what it showed.
    case
        when not changes.is_summary then null
        when returned.job_key is not null then returned.shown_by
        else listings.previous_listed_at
    end as changed_after,
    changes.seen_by as changed_by,
    changes.updated_at as recorded_at,
    cast(changes.version as bigint) as version
from changes
left join {{ ref('public_jobs', 'public_jobs__listings') }} as listings
    on changes.organisation = listings.organisation and changes.seen_by = listings.listed_at
left join returned on changes.job_key = returned.job_key and changes.seen_by = returned.listed_at
left join {{ ref('public_jobs', 'public_jobs__job_versions') }} as versions
    on
        changes.job_key = versions.job_key
        and changes.seen_by >= versions.in_force_from
        and changes.seen_by < versions.in_force_until
