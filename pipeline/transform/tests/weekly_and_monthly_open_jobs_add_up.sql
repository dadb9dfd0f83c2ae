-- Each week and each month has as many jobs as daily_open_jobs has at its end.
with of_parts as (
    {%- for part in ('week', 'month') %}
    select organisation, '{{ part }}' as part, {{ part }} as first_day, count(*) as open_jobs
    from {{ ref('public_jobs', 'public_jobs__' ~ part ~ 'ly_open_jobs') }}
    group by organisation, {{ part }}
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

daily as (
    {%- for part in ('week', 'month') %}
    select
        daily.organisation,
        '{{ part }}' as part,
        dates.{{ part }} as first_day,
        daily.day,
        sum(daily.open_jobs) as open_jobs
    from {{ ref('public_jobs', 'public_jobs__daily_open_jobs') }} as daily
    inner join {{ ref('public_jobs', 'public_jobs__dates') }} as dates on daily.day = dates.day
    group by daily.organisation, dates.{{ part }}, daily.day
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

last_days as (
    select part, first_day, max(day) as day
    from daily
    group by part, first_day
),

ends as (
    select daily.*
    from daily
    inner join last_days using (part, first_day, day)
    where daily.open_jobs > 0
)

select organisation, part, first_day, of_parts.open_jobs, ends.open_jobs as expected
from of_parts
full outer join ends using (organisation, part, first_day)
where of_parts.open_jobs is distinct from ends.open_jobs
