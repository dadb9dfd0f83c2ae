{#
The versions of a history. A build may see half a load: a row without a new listing, or no row for a
while. So a version counts from the first listing that was new when a build saw it, or after that;
until there is one it does not count. One that returns unchanged is the same version.
#}
{% macro versions(history, columns) -%}
{%- set by_time = '(partition by job_key order by seen_by, dbt_valid_from)' -%}
with listings as (
    select
        organisation,
        listed_at,
        dbt_valid_from as recorded_at,
        lead(listed_at) over (partition by organisation order by listed_at) as next_listed_at,
        lead(dbt_valid_from) over (partition by organisation order by listed_at) as next_recorded_at
    from {{ ref('public_jobs', 'public_jobs__listing_history') }}
),

seen as (
    select
        history.organisation,
        history.job_key,
        history.dbt_scd_id,
        history.dbt_valid_from,
        -- The listing is recorded last in each build.
        case
            when history.dbt_valid_from > listings.recorded_at then listings.next_listed_at
            else history.listed_at
        end as seen_by,
        case
            when history.dbt_valid_from > listings.recorded_at then listings.next_recorded_at
            else coalesce(listings.recorded_at, history.dbt_valid_from)
        end as updated_at,
        {{ salary_period('history') }} as salary_period,
        -- Texts as they are do not fit in memory.
        md5(
            {%- for column in columns %}
            coalesce(cast(history.{{ column }} as {{ dbt.type_string() }}), '') || chr(31) ||
            {%- endfor %}
            coalesce({{ json_comparable('history.additional_fields') }}, '')
        ) as content
    from {{ history }} as history
    left join listings using (organisation, listed_at)
),

last_of_listing as (
    select *
    from (
        select *, lead(seen_by) over {{ by_time }} as next_seen_by
        from seen
        where seen_by is not null
    ) as compared
    where seen_by is distinct from next_seen_by
),

different as (
    select *
    from (
        select *, lag(content) over {{ by_time }} as previous_content
        from last_of_listing
    ) as compared
    where content is distinct from previous_content
)

-- The first known version stands for all time before it.
select
    organisation,
    job_key,
    dbt_scd_id,
    lag(dbt_scd_id) over {{ by_time }} as old_scd_id,
    row_number() over {{ by_time }} as version,
    seen_by,
    case
        when lag(seen_by) over {{ by_time }} is null then {{ beginning_of_time() }}
        else seen_by
    end as in_force_from,
    coalesce(lead(seen_by) over {{ by_time }}, {{ end_of_time() }}) as in_force_until,
    cast(updated_at as timestamp) as updated_at,
    salary_period
from different
{%- endmacro %}
