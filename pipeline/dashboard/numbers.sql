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
    select max(listed_at) as listed_at from listed
),

-- One place may have several spellings: it is the city that the seed of locations says, if it says one.
-- Two cities may have one name.
places as (
    select distinct location, coalesce(city || ', ' || country, city, location) as place
    from job_spells
),

-- A year is what the page compares at most, and the longest course that it draws.
spells as (
    select
        spells.organisation,
        coalesce(spells.job_title, spells.public_id) as job_title,
        spells.department,
        places.place,
        spells.seniority_level,
        spells.type,
        spells.currency,
        lower(spells.salary_period) as salary_period,
        spells.has_salary,
        spells.pay,
        spells.salary_low,
        spells.salary_middle,
        spells.salary_high,
        spells.annual_low,
        spells.annual_middle,
        spells.annual_high,
        spells.opened_on,
        spells.was_open_before,
        spells.from_day,
        spells.until_day,
        spells.began_as,
        spells.ended_as,
        case when spells.ended_as = 'open' then jobs.job_url end as job_url,
        jobs.reposted_after
    from job_spells as spells
    inner join jobs_ever as jobs on spells.job_key = jobs.job_key
    left join places on spells.location = places.location
    cross join latest
    where spells.until_day >= cast(latest.listed_at - interval '400 days' as date)
    order by spells.opened_on, spells.job_title, spells.job_key, spells.spell
),

-- The page has no room for texts, and a database would look all of them up to find that out.
without_texts as (
    select
        organisation, happened_by, happened_on, event, job_key, public_id, job_title, department,
        location, seniority_level, type, field, old_value, new_value, change_percent, days_away,
        days_open, was_open_before
    from job_events
    where not is_long
    union all
    select
        organisation, happened_by, happened_on, event, job_key, public_id, job_title, department,
        location, seniority_level, type, field, null, null, change_percent, days_away,
        days_open, was_open_before
    from job_events
    where is_long
),

-- All would make the page large: it has the latest, and says since when.
events as (
    select
        events.organisation,
        events.happened_by,
        events.happened_on,
        events.event,
        coalesce(events.job_title, events.public_id) as job_title,
        events.department,
        places.place,
        events.seniority_level,
        events.type,
        jobs.currency,
        events.field,
        case
            when length(events.old_value) > 60 then left(events.old_value, 60) || '…'
            else events.old_value
        end as old_value,
        case
            when length(events.new_value) > 60 then left(events.new_value, 60) || '…'
            else events.new_value
        end as new_value,
        events.change_percent,
        events.days_away,
        events.days_open,
        events.was_open_before,
        case when jobs.is_open then jobs.job_url end as job_url
    from without_texts as events
    inner join jobs_ever as jobs on events.job_key = jobs.job_key
    left join places on events.location = places.location
    cross join latest
    where events.happened_by > latest.listed_at - interval '400 days'
    order by events.happened_by desc, events.job_title, events.job_key, events.event, events.field
    limit 20000
)
