-- Which jobs are new, changed or gone since yesterday?
-- Compares with the last snapshot of an earlier day, see snapshot_jobs.sql; without one, every job
-- is new. Of a changed job, fields names what differs. What only details have is not compared.
with since as (
    select max(day) as day
    from public_jobs.job_snapshots
    where day < current_date
),

before as (
    select snapshots.*
    from public_jobs.job_snapshots as snapshots
    inner join since on since.day = snapshots.day
),

today as (
    select *
    from public_jobs.jobs
    where is_published
),

compared as (
    select
        coalesce(today.job_title, before.job_title) as job_title,
        coalesce(today.public_id, before.public_id) as public_id,
        before.id is null as is_new,
        today.id is null as is_gone,
        concat_ws(
            ', ',
            case when before.public_id is distinct from today.public_id then 'public_id' end,
            case when before.job_title is distinct from today.job_title then 'job_title' end,
            case when before.location is distinct from today.location then 'location' end,
            case when before.department is distinct from today.department then 'department' end,
            case when before.type is distinct from today.type then 'type' end,
            case
                when before.seniority_level is distinct from today.seniority_level
                    then 'seniority_level'
            end,
            case when before.min_salary is distinct from today.min_salary then 'min_salary' end,
            case when before.max_salary is distinct from today.max_salary then 'max_salary' end,
            case when before.currency is distinct from today.currency then 'currency' end
        ) as fields
    from before
    full join today on today.id = before.id
)

select
    case when is_new then 'new' when is_gone then 'gone' else 'changed' end as change,
    job_title,
    case when not is_new and not is_gone then fields end as fields,
    since.day as since,
    public_id
from compared
cross join since
where fields != ''
order by 1, job_title, public_id;
