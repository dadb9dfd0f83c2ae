-- Which roles ask for more than five years of experience? (Change the number.)
-- Roles that do not say are left out, and so are those that say it in words: "5+" is in
-- additional_fields.
with published as (
    select id
    from public_jobs.job_publications
    where
        unpublished_at is null
        and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
)

select years_experience, job_title, location, public_id, job_url
from public_jobs.job_details
inner join published using (id)
where years_experience > 5
order by years_experience desc, job_title, public_id;
