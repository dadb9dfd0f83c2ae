-- How many roles are open, by department and location?
-- Locations count as the API spells them: "Berlin" and "Berlin, Germany" are two.
select
    coalesce(nullif(department, ''), 'not given') as department,
    coalesce(nullif(location, ''), 'not given') as location,
    count(*) as open_roles
from public_jobs.jobs
join public_jobs.job_publications using (id)
where unpublished_at is null
  and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
group by 1, 2
order by open_roles desc, 1, 2;
