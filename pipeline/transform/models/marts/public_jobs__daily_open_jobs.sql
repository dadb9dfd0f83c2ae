{%- set dimensions = ['department', 'location', 'seniority_level', 'type'] %}
{%- set flows = ['opened', 'closed', 'moved_in', 'moved_out'] %}
{%- set group = 'organisation, ' ~ dimensions | join(', ') %}
{%- set separator = ' || chr(31) || ' %}
{%- set by_day = '(partition by ' ~ group ~ ' order by day)' %}

-- All organisations end on the same day, so that their sum falls only when jobs are closed.
with listings as (
    select
        organisation,
        {{ local_day('listed_at') }} as last_listed_on,
        {{ local_day('max(listed_at) over ()') }} as last_day
    from {{ ref('public_jobs', 'public_jobs__stg_listings') }}
),

versions as (
    select
        job_key,
        {{ dimensions | join(', ') }},
        in_force_from,
        {{ dimensions | join(separator) }} is distinct from
        lag({{ dimensions | join(separator) }}) over (partition by job_key order by in_force_from)
            as is_other
    from (
        select
            job_key,
            {%- for column in dimensions %}
            {{ or_not_given(column) }} as {{ column }},
            {%- endfor %}
            in_force_from
        from {{ ref('public_jobs', 'public_jobs__job_versions') }}
    ) as named
),

-- A version that differs in other columns is no move.
assignments as (
    select
        *,
        lead(in_force_from, 1, {{ end_of_time() }})
            over (partition by job_key order by in_force_from) as in_force_until
    from versions
    where is_other
),

-- Each stay of an open job in one department, location, seniority level and type. What the first
-- build saw in a period counts from its beginning: a job that came back elsewhere has not moved.
stays as (
    select
        periods.organisation,
        periods.opened_after,
        periods.opened_by,
        periods.closed_by,
        listings.last_listed_on,
        {%- for column in dimensions %}
        {{ or_not_given('assignments.' ~ column) }} as in_{{ column }},
        {%- endfor %}
        case
            when assignments.in_force_from > periods.known_by then assignments.in_force_from
            else periods.opened_by
        end as in_force_from,
        coalesce(assignments.in_force_until, {{ end_of_time() }}) as in_force_until
    from (
        select *, coalesce(built_by, opened_by) as known_by
        from {{ ref('public_jobs', 'public_jobs__publication_periods') }}
    ) as periods
    inner join listings using (organisation)
    left join assignments
        on
            periods.job_key = assignments.job_key
            and periods.known_by < assignments.in_force_until
            and coalesce(periods.closed_by, {{ end_of_time() }}) > assignments.in_force_from
),

-- The closing of a job whose row was removed has the time of a build, which is after the listing.
events as (
    select
        organisation,
        {%- for column in dimensions %}
        in_{{ column }} as {{ column }},
        {%- endfor %}
        least({{ local_day('in_force_from') }}, last_listed_on) as day,
        case
            when in_force_from > opened_by then 'moved_in'
            when opened_after is null then 'found'
            else 'opened'
        end as event,
        1 as step
    from stays
    union all
    select
        organisation,
        {%- for column in dimensions %}
        in_{{ column }},
        {%- endfor %}
        least(
            {{ local_day(of_known('least', ['closed_by', 'in_force_until'])) }}, last_listed_on
        ),
        case when in_force_until < closed_by or closed_by is null then 'moved_out' else 'closed' end,
        -1
    from stays
    where closed_by is not null or in_force_until < {{ end_of_time() }}
),

-- Open is what the last listing of a day shows, or the last one before it. A job that was found open
-- was open when the day began.
levels as (
    select
        {{ group }},
        day as event_day,
        {%- for flow in flows %}
        sum(case when event = '{{ flow }}' then 1 else 0 end) as {{ flow }},
        {%- endfor %}
        sum(sum(step)) over {{ by_day }} as open_jobs,
        sum(sum(step)) over {{ by_day }} - sum(case when event = 'found' then 0 else step end)
            as open_at_start,
        lead(day) over {{ by_day }} as next_day
    from events
    group by {{ group }}, day
),

{% set last_day = 'case when open_jobs = 0 then event_day else coalesce(next_day - 1, last_day) end' -%}
-- A day without an event repeats the one before it. A group that is empty has no such days.
days as (
    select
        levels.*,
        listings.last_listed_on,
        {{ each_day('event_day', last_day) }} as day
    from levels
    inner join listings using (organisation)
    {{ each_day_rows('event_day', last_day) }}
)

select
    organisation,
    day,
    {{ dimensions | join(', ') }},
    cast(case when day = event_day then open_at_start else open_jobs end as bigint)
        as open_at_start,
    {%- for flow in flows %}
    cast(case when day = event_day then {{ flow }} else 0 end as bigint) as {{ flow }},
    {%- endfor %}
    cast(open_jobs as bigint) as open_jobs,
    day > last_listed_on as is_carried_forward,
    day >= all_listed_on as has_all_organisations
from days
cross join (
    select max(first_day) as all_listed_on
    from (select min(day) as first_day from events group by organisation) as first_days
) as since
