-- Which roles ask for more than five years of experience?
--
-- Change: more_than.
-- Roles that do not say, or that say it in words ("5+", which is in additional_fields), are left out.
with choice as (
    select 5 as more_than
)

select details.years_experience, details.job_title, details.location, details.public_id, details.job_url
from public_jobs.job_details as details
cross join choice
where details.is_published and details.years_experience > choice.more_than
order by details.years_experience desc, details.job_title nulls last, details.public_id;
