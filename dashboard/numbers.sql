-- All numbers of the page, as common table expressions in SQL that DuckDB and PostgreSQL share.
-- page.py puts three before them, whose columns have the names of column_naming: snake_case:
-- `publications`, `jobs` and `edits`, each with the organisation, which is the name of the schema.
-- Each number stands for a choice of the page: everything, one organisation, or one department.

-- The rule for published jobs, for each organisation. Nobody knows how many roles were open before
-- known_since: a full refresh or a lost state forgets when the published jobs were opened.
dated as (
    select
        *,
        unpublished_at is null and last_seen_at = max(last_seen_at) over its_rows as is_open,
        max(coalesce(unpublished_at, last_seen_at)) over its_rows as listed_at,
        coalesce(
            max(case when opened_after is null then first_seen_at end) over its_rows,
            min(opened_after) over its_rows
        ) as known_since,
        row_number() over (partition by organisation, id order by first_seen_at desc) = 1
            as is_last_period
    from publications
    window its_rows as (partition by organisation)
),

roles as (
    select
        dated.*,
        case
            when is_open then null
            when unpublished_at is null and last_seen_at < known_since then known_since
            else coalesce(unpublished_at, listed_at)
        end as closed_by,
        coalesce(nullif(jobs.job_title, ''), dated.public_id) as job_title,
        case when jobs.id is not null then coalesce(nullif(jobs.department, ''), 'not given') end
            as department,
        coalesce(nullif(jobs.location, ''), 'not given') as location,
        coalesce(nullif(jobs.seniority_level, ''), 'not given') as seniority_level,
        coalesce(nullif(jobs.currency, ''), 'not given') as currency,
        least(nullif(jobs.min_salary, 0), nullif(jobs.max_salary, 0)) as low,
        greatest(nullif(jobs.min_salary, 0), nullif(jobs.max_salary, 0)) as high
    from dated
    left join jobs on dated.organisation = jobs.organisation and dated.id = jobs.id
),

-- Some targets remove the rows of closed jobs. Until the last of those closed, nobody knows how
-- many roles a department had.
remembered as (
    select
        *,
        max(case when department is null then closed_by end) over (partition by organisation)
            as forgotten_until
    from roles
),

grouped as (
    select
        grouping(organisation) + grouping(department) as sets,
        organisation,
        department,
        count(*) as ever,
        count(*) filter (where is_open) as open_roles,
        min(listed_at) as listed_at,
        max(forgotten_until) as forgotten_until
    from remembered
    group by grouping sets ((), (organisation), (organisation, department))
),

-- One organisation is everything. At most 200 choices keep the page small.
choices as (
    select
        *,
        row_number() over by_size - 1 as choice,
        count(*) over () as all_choices,
        coalesce(organisation, '') || coalesce(chr(31) || department, '') as choice_key
    from grouped
    where
        sets = 2
        or sets = 1 and (select count(distinct organisation) from roles) > 1
        or sets = 0 and department is not null
    window by_size as (
        order by sets desc, open_roles desc, ever desc, organisation, department
    )
    order by choice
    limit 200
),

chosen as (
    select
        remembered.*,
        choices.choice,
        case when choices.sets > 0 or remembered.forgotten_until is null then known_since
            else greatest(known_since, remembered.forgotten_until)
        end as since
    from remembered
    cross join unnest(array[
        '', remembered.organisation, remembered.organisation || chr(31) || remembered.department
    ]) as keys(choice_key)
    inner join choices on keys.choice_key = choices.choice_key
),

-- Open roles over time: at each listing, or after the last one of a day or week if there are many.
moments as (
    select distinct moments.moment
    from roles
    cross join unnest(array[known_since, first_seen_at, closed_by, listed_at]) as moments(moment)
    where moments.moment >= known_since
),

steps as (
    select
        moment,
        case
            when count(*) over () <= 100 then moment
            when (select count(distinct cast(moment as date)) from moments) <= 100
                then cast(date_trunc('day', moment) as timestamp)
            else cast(date_trunc('week', moment) as timestamp)
        end as time
    from moments
),

events as (
    select
        choice,
        greatest(first_seen_at, since) as moment,
        1 as change,
        case when opened_after >= since then 1 else 0 end as opened,
        0 as closed,
        listed_at
    from chosen
    where closed_by is null or closed_by > since
    union all
    select choice, closed_by, -1, 0, 1, listed_at
    from chosen
    where closed_by > since
),

recent as (
    select choice, sum(opened) as opened, sum(closed) as closed
    from events
    where moment > listed_at - interval '28 days'
    group by choice
),

changes as (
    select events.choice, steps.time, sum(events.change) as change
    from events
    inner join steps using (moment)
    group by events.choice, steps.time
),

levels as (
    select
        choices.choice,
        times.time,
        sum(coalesce(changes.change, 0)) over (
            partition by choices.choice order by times.time
        ) as open_roles
    from (select choice, min(time) as first_time from changes group by choice) as choices
    inner join (select distinct time from steps) as times on choices.first_time <= times.time
    left join changes on choices.choice = changes.choice and times.time = changes.time
    order by choices.choice, times.time
),

flows as (
    select
        choice,
        cast(date_trunc('week', moment) as timestamp) as week,
        sum(opened) as opened,
        sum(closed) as closed
    from events
    where opened + closed > 0
    group by 1, 2
    order by 1, 2
),

-- A Kaplan-Meier estimate, as transform/models/marts/time_to_close.sql explains it.
periods as (
    select
        choice,
        is_open,
        (
            round(cast(extract(epoch from (last_seen_at - first_seen_at)) / 86400 as numeric(18, 6)), 1)
            + round(cast(extract(
                epoch from (coalesce(closed_by, last_seen_at) - opened_after)
            ) / 86400 as numeric(18, 6)), 1)
        ) / 2 as days
    from chosen
    where opened_after is not null and (since = known_since or opened_after >= since)
),

ends as (
    select
        choice,
        cast(days as float8) as days,
        count(*) filter (where not is_open) as closed,
        cast(sum(count(*)) over (partition by choice order by days desc) as float8) as at_risk
    from periods
    group by choice, days
),

-- A product is the sum of logarithms, which 0 has none of.
estimates as (
    select
        choice,
        days,
        exp(sum(ln(case when closed < at_risk then 1 - closed / at_risk else 1 end)) over so_far)
        * min(case when closed < at_risk then 1 else 0 end) over so_far as still_open
    from ends
    window so_far as (partition by choice order by days)
),

-- The first point below each percent draws the curve; the last shows how far it is known.
survival as (
    select choice, 0 as days, 1 as still_open from estimates group by choice
    union all
    select choice, min(days), max(still_open)
    from estimates
    group by choice, ceil(100 * still_open)
    union all
    select choice, max(days), min(still_open) from estimates group by choice
    order by 1, 2, 3 desc
),

groups as (
    select
        choices.choice,
        choices.organisation,
        choices.department,
        choices.open_roles,
        case when choices.is_known then coalesce(recent.opened, 0) end as opened,
        case when choices.is_known then coalesce(recent.closed, 0) end as closed,
        choices.listed_at,
        choices.forgotten_until,
        choices.all_choices,
        min(case when estimates.still_open < 0.5 + 1e-9 then estimates.days end) as median_days,
        max(estimates.days) as longest_days
    from (
        select
            *,
            sets > 0 or coalesce(forgotten_until <= listed_at - interval '28 days', true) as is_known
        from choices
    ) as choices
    left join recent on choices.choice = recent.choice
    left join estimates on choices.choice = estimates.choice
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9
    order by choices.choice
),

-- As queries/salary_ranges.sql, of each choice.
pay as (
    select
        choice,
        currency,
        seniority_level,
        count(*) as roles,
        min(low) as lowest,
        percentile_cont(0.5) within group (order by (low + high) / 2) as median,
        max(high) as highest
    from chosen
    where is_open and high > 0
    group by choice, currency, seniority_level
    order by choice, currency, median, seniority_level
),

oldest as (
    select *
    from (
        select
            choice,
            job_title,
            organisation,
            department,
            location,
            round(cast(extract(epoch from (last_seen_at - first_seen_at)) / 86400 as numeric(18, 6)), 1)
                as days,
            opened_after is null as is_older,
            row_number() over (
                partition by choice order by last_seen_at - first_seen_at desc, job_title, id
            ) as place
        from chosen
        where is_open
    ) as ranked
    where place <= 10 and days > 0
    order by choice, place
),

happened as (
    select choice, id, organisation, job_title, department, first_seen_at as time, 'opened' as event
    from chosen
    where opened_after >= since
    union all
    select choice, id, organisation, job_title, department, closed_by, 'closed'
    from chosen
    where closed_by > since
),

latest as (
    select *
    from (
        select
            choice,
            time,
            event,
            job_title,
            organisation,
            department,
            row_number() over (partition by choice order by time desc, event, job_title, id) as place
        from happened
    ) as ranked
    where place <= 10
    order by choice, place
),

latest_edits as (
    select *
    from (
        select
            chosen.choice,
            edits.changed_by as time,
            chosen.job_title,
            chosen.organisation,
            edits.field,
            left(edits.old_value, 60) as old_value,
            left(edits.new_value, 60) as new_value,
            row_number() over (
                partition by chosen.choice
                order by edits.changed_by desc, chosen.job_title, edits.field, chosen.id
            ) as place
        from edits
        inner join chosen
            on
                edits.organisation = chosen.organisation
                and edits.id = chosen.id
                and chosen.is_last_period
    ) as ranked
    where place <= 10
    order by choice, place
)
