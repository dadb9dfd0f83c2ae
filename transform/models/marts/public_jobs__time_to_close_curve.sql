{%- set dimensions = ['overall', 'department', 'location', 'seniority_level', 'type'] -%}
{%- set group = 'organisation, dimension, value' -%}
{%- set so_far = '(partition by ' ~ group ~ ' order by days)' -%}

-- A Kaplan-Meier estimate: for each number of days, of the jobs that were open for that long and
-- still observed, the share that closed then. An open job counts for as long as it has been open.
with periods as (
    select
        periods.*,
        'all' as overall,
        (days_open_at_least + days_open_at_most) / 2 as days,
        {{ days_before('listings.listed_at', 28) }} as four_weeks_before
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
    left join {{ ref('public_jobs', 'public_jobs__stg_listings') }} as listings using (organisation)
    where opened_after is not null
),

-- Each period as it is, and as it was four weeks before: shorter, and open if it closed
-- since then.
readings as {{ materialized() }} (
    select
        organisation,
        {{ dimensions | join(', ') }},
        days,
        1 as ended,
        case when is_open then 0 else 1 end as closed,
        0 as ended_before,
        0 as closed_before
    from periods
    union all
    select
        organisation,
        {{ dimensions | join(', ') }},
        least(days, (
            {{ days_between('opened_by', 'four_weeks_before') }}
            + {{ days_between('opened_after', 'four_weeks_before') }}
        ) / 2),
        0,
        0,
        1,
        case when closed_by <= four_weeks_before then 1 else 0 end
    from periods
    where opened_by <= four_weeks_before
),

grouped as (
    {%- for dimension in dimensions %}
    select
        organisation,
        '{{ dimension }}' as dimension,
        coalesce({{ dimension }}, 'not given') as value,
        days,
        ended,
        closed,
        ended_before,
        closed_before
    from readings
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

ends as (
    select
        {{ group }},
        days,
        {%- for reading in ['', '_before'] %}
        sum(closed{{ reading }}) as closed{{ reading }},
        cast(sum(sum(ended{{ reading }})) over (
            partition by {{ group }} order by days desc
        ) as {{ double() }}) as at_risk{{ reading }}{{ ',' if not loop.last }}
        {%- endfor %}
    from grouped
    group by {{ group }}, days
)

-- A product is the sum of logarithms, which 0 has none of.
select
    {{ group }},
    days,
    cast(at_risk as bigint) as at_risk,
    cast(closed as bigint) as closed,
    {%- for reading in ['', '_before'] %}
    {%- set closed, at_risk = 'closed' ~ reading, 'at_risk' ~ reading %}
    {%- set some_are_left = closed ~ ' < ' ~ at_risk %}
    case
        when {{ at_risk }} > 0 then cast(cast(
            exp(sum(ln(case when {{ some_are_left }} then 1 - {{ closed }} / {{ at_risk }} else 1 end)) over {{ so_far }})
            * min(case when {{ some_are_left }} then 1 else 0 end) over {{ so_far }}
            as numeric(18, 6)
        ) as {{ double() }})
    end as still_open{{ reading }}{{ ',' if not loop.last }}
    {%- endfor %}
from ends
