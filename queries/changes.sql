-- Which jobs are new, changed or gone since yesterday?
--
-- Needs snapshot_jobs.sql to have run on an earlier day, and compares with the last of these: with
-- yesterday if it runs every day (since tells). Says nothing before there is one.
-- A changed job has one row for each field that changed. What only the details have, such as the
-- overview, is not compared. Where a day begins is up to the time zone of your session.
with since as (
    select max(taken_on) as taken_on
    from public_jobs.job_snapshots
    where taken_on < current_date
),

past as (
    select snapshots.*
    from public_jobs.job_snapshots as snapshots
    inner join since on since.taken_on = snapshots.taken_on
    where snapshots.id is not null
),

present as (
    select *
    from public_jobs.jobs
    where is_published
),

changes as (
    select 'new' as change, id, cast(null as text) as field, cast(null as text) as before, cast(null as text) as after
    from present
    where id not in (select id from past)

    union all

    select 'gone', id, null, null, null
    from past
    where id not in (select id from present)

    union all

    select 'changed', past.id, fields.field, fields.before, fields.after
    from past
    inner join present on present.id = past.id
    cross join lateral (
        values
        ('public_id', past.public_id, present.public_id),
        ('job_title', past.job_title, present.job_title),
        ('location', past.location, present.location),
        ('department', past.department, present.department),
        ('type', past.type, present.type),
        ('seniority_level', past.seniority_level, present.seniority_level),
        (
            'min_salary',
            cast(cast(past.min_salary as decimal(38, 2)) as text),
            cast(cast(present.min_salary as decimal(38, 2)) as text)
        ),
        (
            'max_salary',
            cast(cast(past.max_salary as decimal(38, 2)) as text),
            cast(cast(present.max_salary as decimal(38, 2)) as text)
        ),
        ('currency', past.currency, present.currency)
    ) as fields(field, before, after)
    where fields.before is distinct from fields.after
)

select
    since.taken_on as since,
    changes.change,
    coalesce(present.job_title, past.job_title) as job_title,
    coalesce(present.location, past.location) as location,
    changes.field,
    changes.before,
    changes.after,
    coalesce(present.public_id, past.public_id) as public_id
from changes
inner join since on since.taken_on is not null
left join present on present.id = changes.id
left join past on past.id = changes.id
order by changes.change desc, 8, changes.field;
