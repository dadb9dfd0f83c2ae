{%- set dimensions = ['overall', 'department', 'location', 'seniority_level', 'type', 'has_salary', 'quarter', 'month'] -%}
{%- set group = 'organisation, dimension, value' -%}
{%- set so_far = '(partition by ' ~ group ~ ' order by days)' -%}

-- A Kaplan-Meier estimate: for each number of days, of the jobs that were open for that long and
-- still observed, the share that closed then. An open job counts for as long as it has been open.
with periods as (
    select
        organisation,
        department,
        location,
        seniority_level,
        type,
        has_salary,
        is_open,
        'all' as overall,
        {%- for part in ('quarter', 'month') %}
        {{ first_day_of(part, 'opened_on') }} as {{ part }},
        {%- endfor %}
        (days_open_at_least + days_open_at_most) / 2 as days
    from {{ ref('public_jobs', 'public_jobs__job_periods') }}
    where opened_after is not null
),

grouped as (
    {%- for dimension in dimensions %}
    select
        organisation,
        '{{ dimension }}' as dimension,
        {{ or_not_given('cast(' ~ dimension ~ ' as ' ~ dbt.type_string() ~ ')') }} as value,
        days,
        case when is_open then 0 else 1 end as closed
    from periods
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

ends as (
    select
        {{ group }},
        days,
        sum(closed) as closed,
        sum(count(*)) over (partition by {{ group }} order by days desc) as at_risk
    from grouped
    group by {{ group }}, days
),

-- A product is the sum of logarithms, which 0 has none of.
curve as (
    select
        {{ group }},
        days,
        cast(at_risk as bigint) as at_risk,
        cast(closed as bigint) as closed,
        {%- set some_are_left = 'closed < at_risk' %}
        {%- set share_left = '1 - closed / cast(at_risk as ' ~ double() ~ ')' %}
        cast(cast(
            exp(sum(ln(case when {{ some_are_left }} then {{ share_left }} else 1 end)) over {{ so_far }})
            * min(case when {{ some_are_left }} then 1 else 0 end) over {{ so_far }}
            as numeric(18, 6)
        ) as {{ double() }}) as still_open
    from ends
)

select
    *,
    max(at_risk) over (partition by {{ group }}) as jobs,
    cast(sum(closed) over (partition by {{ group }}) as bigint) as closed_jobs,
    min(case when still_open <= 0.5 then days end) over (partition by {{ group }}) as median_days,
    max(days) over (partition by {{ group }}) as longest_days
from curve
