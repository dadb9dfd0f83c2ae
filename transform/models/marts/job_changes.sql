with jobs as (
    select
        organisation,
        job_key,
        id,
        public_id as public_id_now,
        job_title as job_title_now,
        listed_at,
        version,
        {%- for column in fields()['jobs'] %}
        {{ column }},
        lag({{ column }}) over (partition by job_key order by version) as old_{{ column }},
        {%- endfor %}
        true as is_summary
    from {{ ref('int_job_versions') }}
),

details as (
    select
        organisation,
        job_key,
        id,
        listed_at,
        row_number() over (partition by job_key order by dbt_valid_from) as version,
        {%- for column in fields()['job_details'] | list + ['additional_fields'] %}
        {{ column }},
        lag({{ column }}) over (partition by job_key order by dbt_valid_from) as old_{{ column }},
        {%- endfor %}
        false as is_summary
    from {{ ref('job_detail_history') }}
),

-- All of a detail's fields without a column, before and after a change.
undeclared_names as (
    {%- for values in ['additional_fields', 'old_additional_fields'] %}
    select
        organisation, job_key, id, listed_at, version, additional_fields, old_additional_fields,
        {{ json_names(values) }} as field
    from details
    where version > 1 and additional_fields is distinct from old_additional_fields
    {{ 'union' if not loop.last }}
    {%- endfor %}
),

undeclared as (
    select
        organisation, job_key, id, listed_at, version, field,
        {{ text(json_as_text(json_value('old_additional_fields', 'field'))) }} as old_value,
        {{ text(json_as_text(json_value('additional_fields', 'field'))) }} as new_value
    from undeclared_names
),

changes as (
    {%- for table, columns in [('jobs', fields()['jobs']), ('details', fields()['job_details'])] %}
    {%- for column, group in columns.items() %}
    {%- set is_number = group == 'number' %}
    select
        organisation, job_key, id, listed_at, version, is_summary,
        '{{ column }}' as field,
        {{ number_as_text('old_' ~ column) if is_number else 'old_' ~ column }} as old_value,
        {{ number_as_text(column) if is_number else column }} as new_value,
        {{ 'old_' ~ column if is_number else 'cast(null as float8)' }} as old_number,
        {{ column if is_number else 'cast(null as float8)' }} as new_number
    from {{ table }}
    where version > 1 and {{ column }} is distinct from old_{{ column }}
    union all
    {%- endfor %}
    {%- endfor %}
    select
        organisation, job_key, id, listed_at, version, false as is_summary,
        -- A value that does not fit its column is here too, under the name of the column.
        'additional_fields.' || field as field,
        old_value,
        new_value,
        cast(null as float8) as old_number,
        cast(null as float8) as new_number
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
    -- A job that was published again may have changed at any time since it was last seen.
    case
        when not changes.is_summary then null
        when periods.opened_by > listings.previous_listed_at then periods.last_seen_before
        else listings.previous_listed_at
    end as changed_after,
    changes.listed_at as changed_by,
    cast(changes.version as bigint) as version
from changes
left join {{ ref('int_listings') }} as listings using (organisation, listed_at)
left join periods
    on
        changes.job_key = periods.job_key
        and changes.listed_at >= periods.opened_by
        and changes.listed_at < periods.closed_by
left join {{ ref('int_job_versions') }} as versions
    on
        changes.job_key = versions.job_key
        and changes.listed_at >= versions.in_force_from
        and changes.listed_at < versions.in_force_until
