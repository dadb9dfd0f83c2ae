-- Keep what is published today, for changes.sql and days_on_offer.sql.
--
-- The tables of the tap tell what is, not what was: run this after each sync, as in
-- `meltano run … && duckdb output/warehouse.duckdb -f queries/snapshot_jobs.sql`.
-- It fills a table of its own, public_jobs.job_snapshots, which no sync touches. The last run of a
-- day counts. A day without any published job is one row without an id. What you no longer
-- compare with you may delete: `delete from public_jobs.job_snapshots where taken_on < …`.
begin;

create table if not exists public_jobs.job_snapshots as
select
    current_date as taken_on,
    id,
    public_id,
    job_title,
    location,
    department,
    type,
    seniority_level,
    min_salary,
    max_salary,
    currency
from public_jobs.jobs
where false;

delete from public_jobs.job_snapshots
where taken_on = current_date;

insert into public_jobs.job_snapshots
select
    today.taken_on,
    jobs.id,
    jobs.public_id,
    jobs.job_title,
    jobs.location,
    jobs.department,
    jobs.type,
    jobs.seniority_level,
    jobs.min_salary,
    jobs.max_salary,
    jobs.currency
from (select current_date as taken_on) as today
left join public_jobs.jobs as jobs on jobs.is_published;

commit;
