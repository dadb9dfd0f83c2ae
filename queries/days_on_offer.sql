-- How long have roles been on offer, and how long were those that are gone?
--
-- Needs snapshot_jobs.sql to run every day: the API does not tell when a job was published. A job
-- that was there in the oldest snapshot may be older (at_least). A role that is open has no
-- last_seen. Days without a snapshot, and a pause in which a job was unpublished, count.
with oldest as (
    select min(taken_on) as taken_on
    from public_jobs.job_snapshots
),

seen as (
    select id, max(public_id) as public_id, min(taken_on) as first_seen, max(taken_on) as last_seen
    from public_jobs.job_snapshots
    where id is not null
    group by id
),

present as (
    select *
    from public_jobs.jobs
    where is_published
)

select
    coalesce(present.public_id, seen.public_id) as public_id,
    coalesce(seen.first_seen, current_date) as first_seen,
    case when present.id is null then seen.last_seen end as last_seen,
    case when present.id is null then seen.last_seen else current_date end
    - coalesce(seen.first_seen, current_date) as days,
    coalesce(seen.first_seen = oldest.taken_on, false) as at_least
from seen
full join present on present.id = seen.id
cross join oldest
order by days desc, 1;
