-- How long has each role been on offer, and which are gone?
-- The API does not tell when a job was published: this needs snapshot_jobs.sql every day, and a role
-- that was there on the first of these days may be older.
select
    max(job_title) as job_title,
    min(day) as first_seen,
    max(day) as last_seen,
    max(day) - min(day) as days,
    max(day) < (select max(day) from public_jobs.job_snapshots) as is_gone,
    max(public_id) as public_id
from public_jobs.job_snapshots
group by id
order by days desc, job_title, public_id;
