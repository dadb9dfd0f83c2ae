-- How many roles are open, by department and location?
-- Locations are told apart as the API spells them: "Berlin" and "Berlin, Germany" are two.
select
    coalesce(nullif(department, ''), 'not given') as department,
    coalesce(nullif(location, ''), 'not given') as location,
    count(*) as open_roles
from public_jobs.jobs
where is_published
group by 1, 2
order by open_roles desc, 1, 2;
