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
        id,
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
        versions.*,
        after.id
        {%- for column in columns.keys() | list + ['additional_fields'] %},
        after.{{ column }} is distinct from before.{{ column }} as has_other_{{ column }}
        {%- endfor %}
    from {{ kind }}_new as versions
    inner join {{ kind }}_hashed as after on versions.dbt_scd_id = after.dbt_scd_id
    inner join {{ kind }}_hashed as before on versions.old_scd_id = before.dbt_scd_id
),
{% endfor %}
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
),

{%- for kind in tables %}
-- By itself, because DuckDB takes an outer join for as large as its larger side. Then it would hold
-- the texts of a history in memory, and not these few rows, to fetch the values.
{{ kind }}_titles as (
    select compared.dbt_scd_id, summaries.public_id, summaries.job_title
    from {{ kind }}_compared as compared
    inner join {{ ref('public_jobs', 'public_jobs__stg_summary_versions') }} as in_force
        on
            compared.job_key = in_force.job_key
            and compared.seen_by >= in_force.in_force_from
            and compared.seen_by < in_force.in_force_until
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_history') }} as summaries
        on in_force.dbt_scd_id = summaries.dbt_scd_id
),

-- Without the values, which may be long: they are fetched last, once for each version.
{{ kind }}_dated as {{ materialized() }} (
    select
        compared.*,
        titles.public_id,
        titles.job_title,
        -- No listing bounds a change unless a build saw what it showed.
        {%- if kind == 'summary' %}
        case
            when returned.job_key is not null then returned.shown_by
            else listings.previous_listed_at
        end as changed_after
        {%- else %}
        cast(null as timestamp) as changed_after
        {%- endif %}
    from {{ kind }}_compared as compared
    left join {{ kind }}_titles as titles using (dbt_scd_id)
    {%- if kind == 'summary' %}
    left join {{ ref('public_jobs', 'public_jobs__listings') }} as listings
        on compared.organisation = listings.organisation and compared.seen_by = listings.listed_at
    left join returned on compared.job_key = returned.job_key and compared.seen_by = returned.listed_at
    {%- endif %}
),
{% endfor %}
-- The fields without a column of each side by itself: to read JSON takes several times its length.
{%- for side in ['old', 'new'] %}
{{ side }}_names as (
    select
        dated.dbt_scd_id,
        sent.additional_fields,
        {{ json_names('sent.additional_fields') }} as name
    from detail_dated as dated
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }} as sent
        on dated.{{ 'old_scd_id' if side == 'old' else 'dbt_scd_id' }} = sent.dbt_scd_id
    {{ json_names_rows('sent.additional_fields') }}
    where dated.has_other_additional_fields
),

{{ side }}_fields as (
    select dbt_scd_id, name, {{ text(json_field('additional_fields', 'name')) }} as value
    from {{ side }}_names
),
{% endfor %}
undeclared as (
    select
        dbt_scd_id,
        name,
        old_fields.value as old_value,
        new_fields.value as new_value
    from old_fields
    full outer join new_fields using (dbt_scd_id, name)
    where old_fields.value is distinct from new_fields.value
)

{%- for kind, (history, columns) in tables.items() %}
{%- set pay = "case when changed.field in ('min_salary', 'max_salary') then " %}

select
    dated.organisation,
    dated.job_key,
    dated.id,
    dated.public_id,
    dated.job_title,
    changed.field,
    {{ value_of('before', columns) }} as old_value,
    {{ value_of('after', columns) }} as new_value,
    {{ number_of('before', columns) }} as old_number,
    {{ number_of('after', columns) }} as new_number,
    {{ pay ~ 'before.currency end' if 'currency' in columns else 'null' }} as old_currency,
    {{ pay ~ 'after.currency end' if 'currency' in columns else 'null' }} as new_currency,
    dated.changed_after,
    dated.seen_by as changed_by,
    dated.updated_at as recorded_at,
    cast(dated.version as bigint) as version
from {{ kind }}_dated as dated
inner join {{ ref('public_jobs', history) }} as after on dated.dbt_scd_id = after.dbt_scd_id
inner join {{ ref('public_jobs', history) }} as before on dated.old_scd_id = before.dbt_scd_id
cross join (
    {%- for column in columns %}
    select '{{ column }}' as field {{ 'union all' if not loop.last }}
    {%- endfor %}
) as changed
where
    case changed.field
        {%- for column in columns %}
        when '{{ column }}' then dated.has_other_{{ column }}
        {%- endfor %}
    end

union all
{%- endfor %}

select
    dated.organisation,
    dated.job_key,
    dated.id,
    dated.public_id,
    dated.job_title,
    -- A value that does not fit its column is here too, under the name of the column.
    'additional_fields.' || undeclared.name as field,
    undeclared.old_value,
    undeclared.new_value,
    null as old_number,
    null as new_number,
    null as old_currency,
    null as new_currency,
    dated.changed_after,
    dated.seen_by as changed_by,
    dated.updated_at as recorded_at,
    cast(dated.version as bigint) as version
from undeclared
inner join detail_dated as dated using (dbt_scd_id)
