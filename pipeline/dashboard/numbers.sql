-- What the page shows, selected from the final tables of dbt, in SQL that DuckDB and
-- PostgreSQL share. page.py puts these tables before it, with the chosen organisations alone.
-- The page adds rows up; each row names its organisation, department, location and seniority.

-- The Monday before the day of the latest listing.
today as (
    select
        cast(max(listed_at) as date) as today,
        cast(max(listed_at) as date) - 28 as four_weeks_ago,
        cast(date_trunc('week', max(listed_at) - interval '1 day') as date) as monday
    from listings
),

-- What the first listing of that Monday was the first to show had happened before it.
organisations as (
    select
        organisation,
        max(listings.listed_at) as listed_at,
        least(min(cast(listings.listed_at as date)), min(known.since)) as since,
        coalesce(
            min(
                case
                    when cast(listings.listed_at as date) = today.monday then listings.listed_at
                end
            ),
            max(cast(today.monday as timestamp))
        ) as monday_listed_at
    from listings
    cross join today
    left join (
        select organisation, min(day) as since from daily_open_jobs group by organisation
    ) as known using (organisation)
    group by organisation
    order by organisation
),

-- Each of a hundred days, or the last day of each week; also those without an open role.
days as (
    select max(dates.day) as day
    from dates
    cross join today
    cross join (select min(since) as since from organisations) as known
    where dates.day between known.since and today.today
    group by case when today.today - known.since < 100 then dates.day else dates.week end
    order by 1
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
        versions.department,
        versions.location,
        versions.seniority_level,
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
        jobs.department,
        jobs.location,
        jobs.seniority_level,
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
        case when jobs.annual_middle is null then jobs.salary_period else 'year' end as pay_period,
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

-- The first are changes, because PostgreSQL takes the types of a union from there.
events as (
    select
        job_key,
        changed_by as time,
        case
            when field in ('min_salary', 'max_salary', 'currency') then 'repriced' else 'edited'
        end as event,
        field,
        case when length(old_value) > 60 then left(old_value, 60) || '…' else old_value end
            as old_value,
        case when length(new_value) > 60 then left(new_value, 60) || '…' else new_value end
            as new_value,
        old_number,
        new_number,
        old_currency,
        new_currency
    from job_changes
    union all
    select job_key, opened_by, 'opened', null, null, null, null, null, null, null
    from publication_periods
    where opened_after is not null
    union all
    select job_key, closed_by, 'closed', null, null, null, null, null, null, null
    from publication_periods
    where not is_open
),

events_of_roles as (
    select
        ever.organisation,
        ever.department,
        ever.location,
        ever.seniority_level,
        coalesce(ever.job_title, ever.public_id) as job_title,
        ever.job_url,
        events.time > organisations.monday_listed_at as is_since_monday,
        events.*
    from events
    inner join jobs_ever as ever on events.job_key = ever.job_key
    inner join organisations on ever.organisation = organisations.organisation
),

counts as (
    select
        organisation,
        department,
        location,
        seniority_level,
        event,
        count(*) as events,
        sum(case when is_since_monday then 1 else 0 end) as events_since_monday,
        count(distinct case when is_since_monday then job_key end) as roles_since_monday
    from events_of_roles
    group by 1, 2, 3, 4, 5
),

-- All would make the page large. The latest thousand are there, and two thousand shared fairly: the
-- latest of each group, the second of each, until the tenth, so that any filter finds the latest.
latest as (
    select
        organisation,
        department,
        location,
        seniority_level,
        job_key,
        job_title,
        job_url,
        time,
        event,
        is_since_monday,
        field,
        old_value,
        new_value,
        old_number,
        new_number,
        old_currency,
        new_currency
    from (
        select
            *,
            row_number() over (
                partition by event order by time desc, job_title, job_key, field
            ) as nth,
            row_number() over (
                partition by event
                order by least(nth_of_group, 11), time desc, job_title, job_key, field
            ) as fair_nth
        from (
            select
                *,
                row_number() over (
                    partition by organisation, department, location, seniority_level, event
                    order by time desc, job_title, job_key, field
                ) as nth_of_group
            from events_of_roles
        ) as numbered_in_groups
    ) as numbered
    where nth <= 1000 or fair_nth <= 2000
    order by time desc, job_title, job_key, field
)
