{# BigQuery has no append; without a key, a merge is one. #}
{{ config(
    materialized='incremental',
    incremental_strategy='merge' if target.type == 'bigquery' else 'append',
    on_schema_change='append_new_columns'
) }}
{%- set tables = {
    'summary': ['public_jobs__stg_job_history', fields()['jobs']],
    'detail': [
        'public_jobs__stg_job_detail_history',
        dict(fields()['job_details'], additional_fields='undeclared'),
    ],
} -%}
{%- set by_build = '(partition by history.job_key order by history.dbt_valid_from)' %}
{# Longer values stay in the histories, where job_changes finds them. #}
{%- set is_short = '<= 500' %}

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
        {%- if group == 'number' %}
        {{ column }},
        {{ number_as_text(column) }} as short_{{ column }},
        {%- else %}
        md5({{ column }}) as {{ column }},
        {%- if group != 'undeclared' %}
        case when length({{ column }}) {{ is_short }} then {{ column }} end as short_{{ column }},
        {%- endif %}
        {%- endif %}
        {%- endfor %}
        id
    from {{ ref('public_jobs', history) }}
    {%- if is_incremental() %}
    -- By the time too, because the database then passes over the texts of older versions.
    inner join (
        select distinct dbt_scd_id, dbt_valid_from
        from (
            select dbt_scd_id, dbt_valid_from from {{ kind }}_new
            union all
            select old_scd_id, old_valid_from from {{ kind }}_new
        ) as of_both
    ) as needed using (dbt_scd_id, dbt_valid_from)
    {%- endif %}
),

{{ kind }}_compared as {{ materialized() }} (
    select
        versions.*,
        {%- for column, group in columns.items() %}
        after.{{ column }} is distinct from before.{{ column }} as has_other_{{ column }},
        {%- if group != 'undeclared' %}
        before.short_{{ column }} as old_{{ column }},
        after.short_{{ column }} as new_{{ column }},
        {%- endif %}
        {%- if group == 'number' %}
        before.{{ column }} as old_number_{{ column }},
        after.{{ column }} as new_number_{{ column }},
        {%- elif group != 'undeclared' %}
        (before.{{ column }} is not null and before.short_{{ column }} is null)
        or (after.{{ column }} is not null and after.short_{{ column }} is null) as is_long_{{ column }},
        {%- endif %}
        {%- endfor %}
        after.id
    from {{ kind }}_new as versions
    inner join {{ kind }}_hashed as after on versions.dbt_scd_id = after.dbt_scd_id
    inner join {{ kind }}_hashed as before on versions.old_scd_id = before.dbt_scd_id
),

{% endfor -%}

-- A value that does not fit its column is here too, under the name of the column.
{%- for side, keys in {'old': ['old_scd_id', 'old_valid_from'], 'new': ['dbt_scd_id', 'dbt_valid_from']}.items() %}
{{ side }}_undeclared as (
    select
        dbt_scd_id,
        name,
        md5(value) as hash,
        case when length(value) {{ is_short }} then value end as short_value
    from (
        select
            dbt_scd_id,
            name,
            {{ text(json_field('additional_fields', 'name')) }} as value
        from (
            select
                compared.dbt_scd_id,
                sent.additional_fields,
                {{ json_names('sent.additional_fields') }} as name
            from detail_compared as compared
            inner join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as sent
                on compared.{{ keys[0] }} = sent.dbt_scd_id and compared.{{ keys[1] }} = sent.dbt_valid_from
            {{ json_names_rows('sent.additional_fields') }}
            where compared.has_other_additional_fields
        ) as named
    ) as valued
),
{% endfor %}
changed as (
    {%- for kind, (_, columns) in tables.items() %}
    {%- set compared = columns.items() | rejectattr(1, 'eq', 'undeclared') | list %}
    {%- set numbers = compared | selectattr(1, 'eq', 'number') | list %}
    select
        compared.dbt_scd_id,
        '{{ kind }}' as kind,
        fields.field,
        cast(null as {{ dbt.type_string() }}) as name,
        {%- for side in ('old', 'new') %}
        case fields.field
            {%- for column, _ in compared %}
            when '{{ column }}' then compared.{{ side }}_{{ column }}
            {%- endfor %}
        end as {{ side }}_value,
        case fields.field
            {%- for column, _ in numbers %}
            when '{{ column }}' then compared.{{ side }}_number_{{ column }}
            {%- endfor %}
        end as {{ side }}_number,
        {%- if 'currency' in columns %}
        case when fields.field in ('min_salary', 'max_salary') then compared.{{ side }}_currency end
            as {{ side }}_currency,
        {%- else %}
        null as {{ side }}_currency,
        {%- endif %}
        {%- endfor %}
        coalesce(case fields.field
            {%- for column, group in compared if group != 'number' %}
            when '{{ column }}' then compared.is_long_{{ column }}
            {%- endfor %}
        end, false) as is_long
    from {{ kind }}_compared as compared
    cross join (
        {%- for column, _ in compared %}
        select '{{ column }}' as field {{ 'union all' if not loop.last }}
        {%- endfor %}
    ) as fields
    where
        case fields.field
            {%- for column, _ in compared %}
            when '{{ column }}' then compared.has_other_{{ column }}
            {%- endfor %}
        end
    union all
    {%- endfor %}
    select
        dbt_scd_id,
        'undeclared' as kind,
        'additional_fields.' || name as field,
        name,
        before.short_value as old_value,
        null as old_number,
        null as old_currency,
        after.short_value as new_value,
        null as new_number,
        null as new_currency,
        (before.hash is not null and before.short_value is null)
        or (after.hash is not null and after.short_value is null) as is_long
    from old_undeclared as before
    full outer join new_undeclared as after using (dbt_scd_id, name)
    where before.hash is distinct from after.hash
),

listings as (
    select
        organisation,
        listed_at,
        lag(listed_at) over (partition by organisation order by listed_at) as previous_listed_at
    from {{ ref('public_jobs', 'public_jobs__listing_history') }}
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
    left join listings
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
),

versions as (
    {%- for kind, compared in {'summary': 'summary', 'detail': 'detail', 'undeclared': 'detail'}.items() %}
    select
        '{{ kind }}' as kind, organisation, job_key, id, dbt_scd_id, dbt_valid_from, old_scd_id,
        old_valid_from, seen_by, updated_at, version
    from {{ compared }}_compared
    {{ 'union all' if not loop.last }}
    {%- endfor %}
)

select
    versions.organisation,
    versions.job_key,
    versions.id,
    summaries.public_id,
    summaries.job_title,
    changed.kind,
    changed.field,
    changed.name,
    changed.old_value,
    changed.new_value,
    changed.is_long,
    changed.old_number,
    changed.new_number,
    changed.old_currency,
    changed.new_currency,
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
    versions.updated_at as recorded_at,
    cast(versions.version as bigint) as version
from changed
inner join versions using (kind, dbt_scd_id)
left join {{ ref('public_jobs', 'public_jobs__stg_summary_versions') }} as in_force
    on
        versions.job_key = in_force.job_key
        and versions.seen_by >= in_force.in_force_from
        and versions.seen_by < in_force.in_force_until
left join {{ ref('public_jobs', 'public_jobs__stg_job_history') }} as summaries
    on in_force.dbt_scd_id = summaries.dbt_scd_id and in_force.dbt_valid_from = summaries.dbt_valid_from
left join listings
    on versions.organisation = listings.organisation and versions.seen_by = listings.listed_at
left join returned on versions.job_key = returned.job_key and versions.seen_by = returned.listed_at
