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

with versions as {{ materialized() }} (
    {%- for kind in tables %}
    select '{{ kind }}' as kind, versions.*
    from {{ ref('public_jobs', 'public_jobs__stg_' ~ kind ~ '_versions') }} as versions
    {%- if is_incremental() %}
    left join (
        select organisation, max(changed_by) as changed_by from {{ this }} group by organisation
    ) as latest on versions.organisation = latest.organisation
    {%- endif %}
    where
        versions.old_scd_id is not null
        {{ 'and (latest.changed_by is null or versions.seen_by > latest.changed_by)' if is_incremental() }}
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

-- Each change has two sides.
sides as {{ materialized() }} (
    select kind, dbt_scd_id as change_id, 'new' as side, dbt_scd_id, dbt_valid_from from versions
    union all
    select kind, dbt_scd_id, 'old', old_scd_id, old_valid_from from versions
),

-- Texts leave these queries as hashes, because no memory holds those of all versions.
{%- for kind, (history, columns) in tables.items() %}
{{ kind }}_sides as {{ materialized() }} (
    select
        sides.change_id,
        sides.side,
        {%- for column, group in columns.items() %}
        {%- set value = number_as_text('sent.' ~ column) if group == 'number' else 'sent.' ~ column %}
        md5({{ value }}) as hash_{{ column }},
        length({{ value }}) > {{ short() }} as is_long_{{ column }},
        case when length({{ value }}) <= {{ short() }} then {{ value }} end as value_{{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
    from sides
    inner join {{ ref('public_jobs', history) }} as sent
        on sides.dbt_scd_id = sent.dbt_scd_id and sides.dbt_valid_from = sent.dbt_valid_from
    where sides.kind = '{{ kind }}'
),
{% endfor %}
-- A value that does not fit its column is here too, under the name of the column.
undeclared as (
    select change_id, side, name, {{ trimmed(json_field('additional_fields', 'name')) }} as value
    from (
        select sides.change_id, sides.side, sent.additional_fields, {{ json_names('sent.additional_fields') }} as name
        from sides
        inner join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as sent
            on sides.dbt_scd_id = sent.dbt_scd_id and sides.dbt_valid_from = sent.dbt_valid_from
        {{ json_names_rows('sent.additional_fields') }}
        where sides.kind = 'detail' and sent.additional_fields is not null
    ) as named
),

hashed as (
    {%- for kind, (_, columns) in tables.items() %}
    {%- for column in columns %}
    select
        '{{ kind }}' as kind, change_id, side, '{{ column }}' as field,
        hash_{{ column }} as hash, is_long_{{ column }} as is_long, value_{{ column }} as value
    from {{ kind }}_sides
    union all
    {%- endfor %}
    {%- endfor %}
    select
        'detail', change_id, side, 'additional_fields.' || name,
        md5(value), length(value) > {{ short() }}, case when length(value) <= {{ short() }} then value end
    from undeclared
),

changed as (
    select
        kind, change_id, field,
        {%- for side in ('old', 'new') %}
        max(case when side = '{{ side }}' then value end) as {{ side }}_value,
        max(case when side = '{{ side }}' then hash end) as {{ side }}_hash,
        {%- endfor %}
        max(case when is_long then 1 else 0 end) = 1 as is_long
    from hashed
    group by kind, change_id, field
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
    left join {{ ref('public_jobs', 'public_jobs__stg_built_listings') }} as listings
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
    versions.organisation,
    versions.job_key,
    changed.field,
    changed.old_value,
    changed.new_value,
    changed.is_long,
    versions.dbt_scd_id,
    versions.dbt_valid_from,
    versions.old_scd_id,
    versions.old_valid_from,
    -- No listing bounds a change unless a build saw what it showed, and none that of a detail.
    case
        when changed.kind <> 'summary' then null
        when returned.job_key is not null then returned.shown_by
        else listings.previous_listed_at
    end as changed_after,
    versions.seen_by as changed_by,
    versions.updated_at as recorded_at
from changed
inner join versions on changed.change_id = versions.dbt_scd_id and changed.kind = versions.kind
left join {{ ref('public_jobs', 'public_jobs__stg_built_listings') }} as listings
    on versions.organisation = listings.organisation and versions.seen_by = listings.listed_at
left join returned on versions.job_key = returned.job_key and versions.seen_by = returned.listed_at
where changed.old_hash is distinct from changed.new_hash
