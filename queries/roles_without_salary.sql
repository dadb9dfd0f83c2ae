-- Which roles are published without a salary?
-- That is, with neither end of the range, or with 0. said_instead is what the API has where a
-- number was due, such as "competitive".
select
    coalesce(nullif(department, ''), 'not given') as department,
    job_title,
    coalesce(additional_fields ->> 'minSalary', additional_fields ->> 'maxSalary') as said_instead,
    public_id,
    job_url
from public_jobs.jobs
where is_published and coalesce(min_salary, 0) = 0 and coalesce(max_salary, 0) = 0
order by 1, job_title, public_id;
