-- Which jobs are new or gone since yesterday?
-- That is, on the day (in UTC) of the last listing. It happened between happened_after and
-- happened_by: each is the time of a listing. A job that was published again is new.
-- A job is "first seen" if no earlier listing is known: nobody knows whether it is new.
-- job_title is null if the API gives none, or the target has removed the row.
with listings as (
    select distinct listed_at
    from (
        select opened_after as listed_at from public_jobs.job_publications
        union all select first_seen_at from public_jobs.job_publications
        union all select last_seen_at from public_jobs.job_publications
        union all select unpublished_at from public_jobs.job_publications
    ) as times
),

-- After a lost state the tap closes nothing that it has forgotten. Such a job closed before the
-- first listing after the one that last showed it.
closings as (
    select roles.id, min(listings.listed_at) as first_listed_without
    from public_jobs.job_publications as roles
    cross join listings
    where listings.listed_at > roles.last_seen_at
    group by roles.id
),

roles as (
    select
        *,
        unpublished_at is null
            and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
            as is_open,
        coalesce(unpublished_at, first_listed_without) as closed_by
    from public_jobs.job_publications
    left join closings using (id)
),

changed as (
    select
        id,
        public_id,
        case when not is_open then 'gone' when opened_after is null then 'first seen' else 'new' end
            as change,
        case when is_open then opened_after else last_seen_at end as happened_after,
        case when is_open then first_seen_at else closed_by end as happened_by
    from roles
)

select
    changed.change,
    jobs.job_title,
    changed.happened_after,
    changed.happened_by,
    changed.public_id
from changed
left join public_jobs.jobs using (id)
where cast(changed.happened_by as date) = (select cast(max(listed_at) as date) from listings)
order by changed.change, jobs.job_title, changed.public_id;
