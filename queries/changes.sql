-- Which jobs are new or gone since yesterday?
-- That is, on the day (in UTC) of the last listing. It happened between happened_after and
-- happened_by: each is the time of a listing. A job that was published again is new.
-- A job is "first seen" if no earlier listing is known: nobody knows whether it is new.
-- job_title is null if the API gives none, or the target has removed the row.
with published as (
    select id
    from public_jobs.job_publications
    where
        unpublished_at is null
        and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
),

latest as (
    select max(coalesce(unpublished_at, last_seen_at)) as listed_at
    from public_jobs.job_publications
),

dated as (
    select
        publications.*,
        published.id is null as is_gone,
        latest.listed_at,
        date_trunc('day', latest.listed_at) as today
    from public_jobs.job_publications as publications
    cross join latest
    left join published using (id)
),

changed as (
    select
        id,
        public_id,
        case when opened_after is null then 'first seen' else 'new' end as change,
        opened_after as happened_after,
        first_seen_at as happened_by
    from dated
    where not is_gone and first_seen_at >= today
    union all
    select id, public_id, 'gone', last_seen_at, coalesce(unpublished_at, listed_at)
    from dated
    where is_gone and coalesce(unpublished_at, last_seen_at) >= today
)

select
    changed.change,
    jobs.job_title,
    changed.happened_after,
    changed.happened_by,
    changed.public_id
from changed
left join public_jobs.jobs using (id)
order by changed.change, jobs.job_title, changed.public_id;
