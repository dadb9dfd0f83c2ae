-- Which jobs are new or gone since yesterday?
-- That is, on the day (in UTC) of the last listing. It happened between happened_after and
-- happened_by: each is the time of a listing. A job that was published again is new.
-- A job is "first seen" if no earlier listing is known: nobody knows whether it is new.
-- job_title is null if the API gives none, or the target has removed the row.
with listings as (
    -- No table lists them: these are the ones that opened a role, closed one, or were the last to
    -- show one, and the ones before an opening.
    select listed_at, lead(listed_at) over (order by listed_at) as next_listed_at
    from (
        select opened_after as listed_at from public_jobs.job_publications
        union all select first_seen_at from public_jobs.job_publications
        union all select last_seen_at from public_jobs.job_publications
        union all select unpublished_at from public_jobs.job_publications
    ) as times
    where listed_at is not null
    group by listed_at
),

-- After a lost state the tap closes nothing that it has forgotten, so unpublished_at is null: the
-- role had closed by the listing after the one that last showed it.
roles as (
    select
        *,
        unpublished_at is null
            and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
            as is_open,
        coalesce(unpublished_at, next_listed_at) as closed_by
    from public_jobs.job_publications
    left join listings on last_seen_at = listed_at
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
