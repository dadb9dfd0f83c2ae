-- What the page shows, selected from the final tables of transform/, in SQL that DuckDB and
-- PostgreSQL share. page.py puts these tables before it, with the chosen organisations alone.
-- The page adds rows up; each row names its organisation, department, location and seniority.

today as (
    select
        max(day) as today,
        max(day) - 28 as four_weeks_ago,
        count(distinct day) <= 100 as is_daily
    from daily_open_jobs
),

organisations as (
    select organisation, listings.listed_at, known.since
    from listings
    left join (
        select organisation, min(day) as since from daily_open_jobs group by organisation
    ) as known using (organisation)
    where listings.is_latest
    order by organisation
),

-- Each of a hundred days, or the last day of each week.
days as (
    select max(day) as day
    from daily_open_jobs
    cross join today
    group by case when today.is_daily then day else cast(date_trunc('week', day) as date) end
),

levels as (
    select organisation, department, location, seniority_level, day, sum(open_jobs) as open_roles
    from daily_open_jobs
    inner join days using (day)
    where open_jobs > 0
    group by organisation, department, location, seniority_level, day
),

flows as (
    select
        organisation,
        department,
        location,
        seniority_level,
        cast(date_trunc('week', day) as date) as week,
        sum(opened) as opened,
        sum(closed) as closed
    from daily_open_jobs
    where opened + closed > 0
    group by 1, 2, 3, 4, 5
),

recent as (
    select
        organisation,
        department,
        location,
        seniority_level,
        sum(case when day > four_weeks_ago then opened else 0 end) as opened,
        sum(case when day > four_weeks_ago then closed else 0 end) as closed,
        sum(case when day <= four_weeks_ago then opened else 0 end) as opened_before,
        sum(case when day <= four_weeks_ago then closed else 0 end) as closed_before,
        sum(case when day = four_weeks_ago then open_jobs else 0 end) as open_before
    from daily_open_jobs
    cross join today
    where day > four_weeks_ago - 28
    group by organisation, department, location, seniority_level
),

-- The roles that were open four weeks ago, as they were then.
before as (
    select
        periods.organisation,
        coalesce(versions.department, 'not given') as department,
        coalesce(versions.location, 'not given') as location,
        coalesce(versions.seniority_level, 'not given') as seniority_level,
        count(*) as roles,
        sum(case when versions.has_salary then 0 else 1 end) as without_pay,
        count(ever.reposted_from) as reposts
    from publication_periods as periods
    inner join listings
        on
            periods.organisation = listings.organisation
            and listings.is_latest
            and periods.opened_by <= listings.listed_at - interval '28 days'
            and (periods.is_open or periods.closed_by > listings.listed_at - interval '28 days')
    inner join job_versions as versions
        on
            periods.job_key = versions.job_key
            and versions.in_force_from <= listings.listed_at - interval '28 days'
            and versions.in_force_until > listings.listed_at - interval '28 days'
    inner join jobs_ever as ever on periods.job_key = ever.job_key
    group by 1, 2, 3, 4
),

estimates as (
    select *
    from time_to_close
    where dimension not in ('type', 'quarter')
),

-- The first point of each percent draws the curve; the last point shows how far it is known.
curve as (
    select organisation, dimension, value, min(days) as days, max(still_open) as still_open
    from time_to_close_curve
    where dimension not in ('type', 'quarter')
    group by organisation, dimension, value, ceil(100 * still_open)
    union
    select organisation, dimension, value, max(days), min(still_open)
    from time_to_close_curve
    where dimension not in ('type', 'quarter')
    group by organisation, dimension, value
    order by days, still_open desc
),

-- Pay of a year where the API says what a salary is paid for.
roles as (
    select
        jobs.organisation,
        coalesce(jobs.department, 'not given') as department,
        coalesce(jobs.location, 'not given') as location,
        coalesce(jobs.seniority_level, 'not given') as seniority_level,
        coalesce(jobs.job_title, jobs.public_id) as job_title,
        jobs.job_url,
        jobs.days_open,
        jobs.was_open_before,
        jobs.has_salary,
        coalesce(jobs.currency, 'no currency') as currency,
        jobs.salary_period,
        jobs.salary_low,
        jobs.salary_high,
        case
            when jobs.min_salary > 0 and jobs.max_salary > 0 then null
            when jobs.min_salary > 0 then 'from'
            when jobs.max_salary > 0 then 'up to'
        end as only_end,
        case when jobs.annual_middle is null then coalesce(jobs.salary_period, 'not given') else 'year' end
            as pay_period,
        coalesce(jobs.annual_low, jobs.salary_low) as pay_low,
        coalesce(jobs.annual_middle, jobs.salary_middle) as pay_middle,
        coalesce(jobs.annual_high, jobs.salary_high) as pay_high,
        jobs.opened_by,
        ever.reposted_from is not null as is_repost,
        earlier.closed_by as earlier_closed_by
    from open_jobs as jobs
    inner join jobs_ever as ever on jobs.job_key = ever.job_key
    left join jobs_ever as earlier
        on ever.organisation = earlier.organisation and ever.reposted_from = earlier.id
    order by jobs.opened_by, jobs.job_title, jobs.job_key
),

happened as (
    select job_key, opened_by as time, 'opened' as event
    from publication_periods
    where opened_after is not null
    union all
    select job_key, closed_by, 'closed'
    from publication_periods
    where not is_open
),

-- More than a thousand rows would make the page large.
latest as (
    select
        ever.organisation,
        coalesce(ever.department, 'not given') as department,
        coalesce(ever.location, 'not given') as location,
        coalesce(ever.seniority_level, 'not given') as seniority_level,
        happened.time,
        happened.event,
        coalesce(ever.job_title, ever.public_id) as job_title,
        ever.job_url
    from happened
    inner join jobs_ever as ever on happened.job_key = ever.job_key
    order by happened.time desc, happened.event, ever.job_title, ever.job_key
    limit 1000
),

edits as (
    select
        ever.organisation,
        coalesce(ever.department, 'not given') as department,
        coalesce(ever.location, 'not given') as location,
        coalesce(ever.seniority_level, 'not given') as seniority_level,
        changes.changed_by as time,
        coalesce(changes.job_title, changes.public_id) as job_title,
        ever.job_url,
        changes.field,
        left(changes.old_value, 60) as old_value,
        left(changes.new_value, 60) as new_value,
        changes.old_number,
        changes.new_number,
        changes.old_currency,
        changes.new_currency
    from job_changes as changes
    inner join jobs_ever as ever on changes.job_key = ever.job_key
    order by changes.changed_by desc, changes.job_title, changes.field, changes.job_key
    limit 1000
)
