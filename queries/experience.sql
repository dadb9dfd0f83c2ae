-- Which roles ask for more than five years of experience? (Change the number.)
-- Left out are roles that do not say, or say it in words: "5+" is in additional_fields.
select years_experience, job_title, location, public_id, job_url
from public_jobs.job_details
where is_published and years_experience > 5
order by years_experience desc, job_title, public_id;
