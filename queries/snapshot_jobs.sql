-- Keep what is published today, for changes.sql.
-- The tap's tables tell what is, not what was: run this after each sync. It fills a table of its
-- own, which no sync touches; the last run of a day counts.
create table if not exists public_jobs.job_snapshots as
select
    current_date as day,
    id, public_id, job_title, location, department, type, seniority_level,
    min_salary, max_salary, currency
from public_jobs.jobs
where false;

delete from public_jobs.job_snapshots
where day = current_date;

insert into public_jobs.job_snapshots
select
    current_date,
    id, public_id, job_title, location, department, type, seniority_level,
    min_salary, max_salary, currency
from public_jobs.jobs
where is_published;
