-- Each week has as many jobs as daily_open_jobs has at its end.
with weekly as (
    select organisation, week, count(*) as open_jobs
    from {{ ref('public_jobs', 'public_jobs__weekly_open_jobs') }}
    group by organisation, week
),

daily as (
    select daily.organisation, dates.week, daily.day, sum(daily.open_jobs) as open_jobs
    from {{ ref('public_jobs', 'public_jobs__daily_open_jobs') }} as daily
    inner join {{ ref('public_jobs', 'public_jobs__dates') }} as dates on daily.day = dates.day
    group by daily.organisation, dates.week, daily.day
),

last_days as (
    select week, max(day) as day
    from daily
    group by week
),

week_ends as (
    select daily.*
    from daily
    inner join last_days on daily.week = last_days.week and daily.day = last_days.day
    where daily.open_jobs > 0
)

select organisation, week, weekly.open_jobs, week_ends.open_jobs as expected
from weekly
full outer join week_ends using (organisation, week)
where weekly.open_jobs is distinct from week_ends.open_jobs
