{%- set dimensions = ['overall', 'department', 'location', 'seniority_level', 'type'] -%}
{%- set group = 'organisation, dimension, value' -%}
{%- set so_far = '(partition by ' ~ group ~ ' order by days)' -%}

-- A Kaplan-Meier estimate: for each number of days, of the jobs that were open for that long and
-- still observed, the share that closed then. An open job counts for as long as it has been open.
with periods as (
    select
        *,
        'all' as overall,
        (days_open_at_least + days_open_at_most) / 2 as days
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }}
    where opened_after is not null
),

grouped as (
    {%- for dimension in dimensions %}
    select
        organisation,
        '{{ dimension }}' as dimension,
        coalesce({{ dimension }}, 'not given') as value,
        days,
        is_open
    from periods
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

ends as (
    select
        {{ group }},
        days,
        count(*) as ended,
        count(case when not is_open then 1 end) as closed,
        cast(sum(count(*)) over (
            partition by {{ group }} order by days desc
        ) as {{ double() }}) as at_risk
    from grouped
    group by {{ group }}, days
)

-- A product is the sum of logarithms, which 0 has none of.
select
    {{ group }},
    days,
    cast(at_risk as bigint) as at_risk,
    cast(closed as bigint) as closed,
    cast(cast(
        exp(sum(ln(case when closed < at_risk then 1 - closed / at_risk else 1 end)) over {{ so_far }})
        * min(case when closed < at_risk then 1 else 0 end) over {{ so_far }}
        as numeric(18, 6)
    ) as {{ double() }}) as still_open
from ends
