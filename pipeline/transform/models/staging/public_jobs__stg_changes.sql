{# BigQuery has no append; without a key, a merge is one. #}
{{ config(
    materialized='incremental',
    incremental_strategy='merge' if target.type == 'bigquery' else 'append'
) }}
{%- set tables = {
    'summary': ['public_jobs__stg_job_history', fields()['jobs']],
    'detail': [
        'public_jobs__stg_job_detail_history',
        dict(fields()['job_details'], additional_fields='text'),
    ],
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
        id,
        {%- for column, group in columns.items() %}
        {{ column if group == 'number' else 'md5(' ~ column ~ ')' }} as {{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
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
        after.id
        {%- for column in columns %},
        after.{{ column }} is distinct from before.{{ column }} as has_other_{{ column }}
        {%- endfor %}
    from {{ kind }}_new as versions
    inner join {{ kind }}_hashed as after on versions.dbt_scd_id = after.dbt_scd_id
    inner join {{ kind }}_hashed as before on versions.old_scd_id = before.dbt_scd_id
),
{% endfor %}
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
)

{%- for kind, (history, columns) in tables.items() %}

select
    compared.organisation,
    compared.job_key,
    compared.id,
    summaries.public_id,
    summaries.job_title,
    '{{ kind }}' as kind,
    changed.field,
    compared.dbt_scd_id,
    compared.dbt_valid_from,
    compared.old_scd_id,
    compared.old_valid_from,
    -- No listing bounds a change unless a build saw what it showed.
    {%- if kind == 'summary' %}
    case
        when returned.job_key is not null then returned.shown_by
        else listings.previous_listed_at
    end as changed_after,
    {%- else %}
    cast(null as timestamp) as changed_after,
    {%- endif %}
    compared.seen_by as changed_by,
    compared.updated_at as recorded_at,
    cast(compared.version as bigint) as version
from {{ kind }}_compared as compared
left join {{ ref('public_jobs', 'public_jobs__stg_summary_versions') }} as in_force
    on
        compared.job_key = in_force.job_key
        and compared.seen_by >= in_force.in_force_from
        and compared.seen_by < in_force.in_force_until
left join {{ ref('public_jobs', 'public_jobs__stg_job_history') }} as summaries
    on in_force.dbt_scd_id = summaries.dbt_scd_id
{%- if kind == 'summary' %}
left join listings
    on compared.organisation = listings.organisation and compared.seen_by = listings.listed_at
left join returned on compared.job_key = returned.job_key and compared.seen_by = returned.listed_at
{%- endif %}
cross join (
    {%- for column in columns %}
    select '{{ column }}' as field {{ 'union all' if not loop.last }}
    {%- endfor %}
) as changed
where
    case changed.field
        {%- for column in columns %}
        when '{{ column }}' then compared.has_other_{{ column }}
        {%- endfor %}
    end
{{ 'union all' if not loop.last }}
{%- endfor %}
