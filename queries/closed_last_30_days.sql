-- Which roles closed in the last 30 days? (Change the number.)
-- The 30 days end with the last listing. A role closed between closed_after and closed_by: each is
-- the time of a listing. It was open for at_least_days or longer, counted from the listing that
-- first showed it.
-- job_title and department are null if the API gives none, or the target has removed the row.
with published as (
    select id
    from public_jobs.job_publications
    where
        unpublished_at is null
        and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
),

latest as (
    select max(coalesce(unpublished_at, last_seen_at)) as listed_at
    from public_jobs.job_publications
)

select
    jobs.job_title,
    nullif(jobs.department, '') as department,
    publications.last_seen_at as closed_after,
    coalesce(publications.unpublished_at, latest.listed_at) as closed_by,
    round(extract(epoch from (publications.last_seen_at - publications.first_seen_at)) / 86400, 1)
        as at_least_days,
    publications.public_id
from public_jobs.job_publications as publications
cross join latest
left join published using (id)
left join public_jobs.jobs using (id)
where
    published.id is null
    -- A role that is gone without a listing on record counts from when it was last seen.
    and coalesce(publications.unpublished_at, publications.last_seen_at)
    >= latest.listed_at - interval '30 days'
order by closed_after desc, publications.public_id;
