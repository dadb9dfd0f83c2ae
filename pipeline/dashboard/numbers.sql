-- What the page shows: rows of the final tables, which the page filters and counts. page.py puts these
-- tables before it, with the chosen organisations alone.

organisations as (
    select organisation, min(day) as since
    from (
        select organisation, day from nights where built_listings > 0
        union all
        select organisation, from_day from job_spells
    ) as days
    group by organisation
    order by organisation
),

-- Each day on which the list of an organisation was read.
listed as (
    select organisation, day, last_listed_at as listed_at
    from nights
    where listings > 0
    order by organisation, day
),

latest as (
    select max(listed_at) as listed_at, max(day) as day from listed
),

-- A year is what the page compares at most, and the longest course that it draws.
days as (
    select dates.day, dates.end_at
    from dates
    cross join latest
    where dates.end_at >= latest.listed_at - interval '401 days' and dates.day <= latest.day
    order by dates.day
),

-- One place may have several spellings: it is the city that the seed of locations says, if it says one.
-- Two cities may have one name.
places as (
    select distinct location, coalesce(city || ', ' || country, city, location) as place
    from job_spells
),

-- An edit that leaves department, place, level, type, pay and title as they were begins nothing on the page.
begun as (
    select
        *,
        began_as <> 'edited'
        or job_title is distinct from lag(job_title) over (partition by job_key, period order by from_at)
            as is_new
    from job_spells
),

stretches as (
    select *, lead(from_day) over (partition by job_key, period order by from_at) as next_from
    from begun
    where is_new
),

-- What was read more than a day before an opening or closing may leave days without a listing in between.
spells as (
    select
        stretches.organisation,
        stretches.id,
        coalesce(stretches.job_title, stretches.public_id) as job_title,
        stretches.department,
        places.place,
        stretches.seniority_level,
        stretches.type,
        stretches.currency,
        lower(stretches.salary_period) as salary_period,
        stretches.has_salary,
        stretches.pay,
        stretches.salary_low,
        stretches.salary_middle,
        stretches.salary_high,
        stretches.annual_low,
        stretches.annual_middle,
        stretches.annual_high,
        stretches.was_open_before,
        periods.open_since,
        periods.shown_from,
        case when periods.shown_from > periods.opened_after + interval '24 hours' then periods.opened_after end
            as opened_after,
        case when stretches.next_from is null and periods.closed_by > periods.closed_after + interval '24 hours'
            then periods.closed_after end as closed_after,
        stretches.from_day,
        coalesce(stretches.next_from, periods.closed_on) as until_day,
        case when stretches.began_as in ('found', 'opened', 'reopened') then stretches.began_as else 'changed' end
            as began_as,
        case when stretches.next_from is not null then 'changed' when periods.is_open then 'open' else 'closed' end
            as ended_as,
        case when stretches.next_from is null and not periods.is_open then periods.days_open_at_least end as days_open,
        case when stretches.next_from is null and periods.is_open then jobs.job_url end as job_url,
        jobs.reposted_after
    from stretches
    inner join job_periods as periods
        on stretches.job_key = periods.job_key and stretches.period = periods.period
    inner join jobs_ever as jobs on stretches.job_key = jobs.job_key
    left join places on stretches.location = places.location
    cross join latest
    where coalesce(stretches.next_from, periods.closed_on, latest.day) >= cast(latest.listed_at - interval '400 days' as date)
    -- The page reads those that ended last first.
    order by coalesce(stretches.next_from, periods.closed_on, date '9999-12-31') desc, periods.open_since,
        stretches.job_title, stretches.job_key, stretches.spell
),

-- All would make the page large: it has the latest, and says since when.
events as (
    select
        events.organisation,
        events.id,
        events.happened_on,
        case when events.happened_by > events.happened_after + interval '24 hours' then events.happened_after end
            as happened_after,
        events.event,
        coalesce(events.job_title, events.public_id) as job_title,
        events.department,
        places.place,
        events.seniority_level,
        events.type,
        events.currency,
        case when length(events.in_words) > 140 then left(events.in_words, 140) || '…' else events.in_words end
            as in_words,
        case when jobs.is_open then jobs.job_url end as job_url
    from job_events as events
    inner join jobs_ever as jobs on events.job_key = jobs.job_key
    left join places on events.location = places.location
    cross join latest
    where events.event <> 'found' and events.happened_by > latest.listed_at - interval '400 days'
    order by events.happened_on desc, events.happened_by desc, events.job_title, events.event_key
    limit 20000
),

-- What is likely one department with two names.
renames as (
    select organisation, old_value, new_value, min(happened_on) as day
    from job_events
    where is_rename and field = 'department'
    group by organisation, old_value, new_value
    order by day, old_value
),

-- The median, and the ends of its 95 % interval (Brookmeyer and Crowley, with Greenwood's variance of
-- log(-log(share still open))), which a curve needs to be right near its ends.
curves as (
    select
        *,
        case when still_open between 0.000001 and 0.999999 then 1.96 / abs(ln(still_open)) * sqrt(
            sum(closed / nullif(cast(at_risk as double precision) * (at_risk - closed), 0))
                over (partition by organisation, dimension, value order by days)
        ) else 0 end as error
    from time_to_close
    where dimension in ('overall', 'department')
),

closing as (
    select
        organisation,
        dimension,
        value as department,
        max(median_days) as median_days,
        min(case when power(still_open, exp(error)) <= 0.5 then days end) as at_least,
        min(case when power(still_open, exp(-error)) <= 0.5 then days end) as at_most,
        max(jobs) as jobs,
        max(closed_jobs) as closed_jobs,
        max(longest_days) as longest_days
    from curves
    group by organisation, dimension, value
    order by organisation, dimension, value
)
