-- Which jobs are new or gone since yesterday?
-- That is, on the day (in UTC) of the last listing. It happened between happened_after and
-- happened_by: each is the time of a listing. A job that was published again is new.
-- A job is "first seen" if no earlier listing is known: nobody knows whether it is new.
-- job_title is null if the API gives none, or the target has removed the row.
with roles as (
    select
        *,
        unpublished_at is null
            and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
            as is_open,
        max(coalesce(unpublished_at, last_seen_at)) over () as listed_at
    from public_jobs.job_publications
),

changed as (
    select
        id,
        public_id,
        case when not is_open then 'gone' when opened_after is null then 'first seen' else 'new' end
            as change,
        case when is_open then opened_after else last_seen_at end as happened_after,
        case when is_open then first_seen_at else coalesce(unpublished_at, listed_at) end
            as happened_by
    from roles
    where
        cast(
            case when is_open then first_seen_at else coalesce(unpublished_at, last_seen_at) end
            as date
        ) = cast(listed_at as date)
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
