-- Which roles are published without a salary?
-- Both ends of the range are missing or 0. said_instead is what the API sends in place of a number,
-- such as "competitive".
with published as (
    select id
    from public_jobs.job_publications
    where
        unpublished_at is null
        and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
)

select
    coalesce(nullif(department, ''), 'not given') as department,
    job_title,
    coalesce(additional_fields ->> 'minSalary', additional_fields ->> 'maxSalary') as said_instead,
    public_id,
    job_url
from public_jobs.jobs
inner join published using (id)
where coalesce(min_salary, 0) = 0 and coalesce(max_salary, 0) = 0
order by 1, job_title, public_id;
