-- All organisations end on the same day, so that their sum falls only when jobs are closed.
with listings as (
    select
        organisation,
        cast(listed_at as date) as last_listed_on,
        cast(max(listed_at) over () as date) as last_day
    from {{ ref('stg_listings') }}
),

placed as (
    select
        periods.organisation,
        periods.opened_after,
        periods.opened_by,
        periods.closed_after,
        periods.closed_by,
        listings.last_day,
        coalesce(versions.department, 'not given') as department,
        coalesce(versions.location, 'not given') as location,
        coalesce(versions.in_force_from, periods.opened_by) as in_force_from,
        coalesce(versions.in_force_until, cast('9999-12-31' as timestamp)) as in_force_until
    from {{ ref('publication_periods') }} as periods
    inner join listings using (organisation)
    left join {{ ref('job_versions') }} as versions using (job_key)
),

-- Open is what the last listing of a day shows, or the last one before it.
spans as (
    select
        organisation,
        department,
        location,
        cast(greatest(opened_by, in_force_from) as date) as first_day,
        least(
            last_day, cast(closed_by as date) - 1, cast(in_force_until as date) - 1
        ) as last_day
    from placed
),

steps as (
    select organisation, department, location, first_day as day, 1 as step
    from spans
    where first_day <= last_day
    union all
    select organisation, department, location, last_day + 1, -1
    from spans
    where first_day <= last_day
),

levels as (
    select
        organisation,
        department,
        location,
        day,
        sum(sum(step)) over place as open_jobs,
        lead(day) over place as next_day
    from steps
    group by organisation, department, location, day
    window place as (partition by organisation, department, location order by day)
),

open_on as (
    select
        organisation,
        department,
        location,
        open_jobs,
        {{ each_day('day', 'next_day - 1') }} as day
    from levels
    where open_jobs > 0
),

events as (
    select day, organisation, department, location, open_jobs, 0 as opened, 0 as closed
    from open_on
    union all
    select cast(opened_by as date), organisation, department, location, 0, 1, 0
    from placed
    where
        opened_after is not null
        and opened_by >= in_force_from
        and opened_by < in_force_until
    union all
    select cast(closed_by as date), organisation, department, location, 0, 0, 1
    from placed
    where
        closed_by is not null
        and closed_after >= in_force_from
        and closed_after < in_force_until
)

select
    events.organisation,
    events.day,
    events.department,
    events.location,
    cast(sum(events.open_jobs) as bigint) as open_jobs,
    cast(sum(events.opened) as bigint) as opened,
    cast(sum(events.closed) as bigint) as closed,
    events.day > listings.last_listed_on as is_carried_forward
from events
inner join listings using (organisation)
group by 1, 2, 3, 4, listings.last_listed_on
