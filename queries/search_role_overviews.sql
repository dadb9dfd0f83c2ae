-- Which roles speak of design, or of testing, in their overview? (Change the words.)
-- Capitals do not matter, and words are found within longer ones: 'test' finds "latest". A role
-- has one row for each word that it has.
with published as (
    select id
    from public_jobs.job_publications
    where
        unpublished_at is null
        and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
),

search(word) as (
    values ('design'), ('test')
),

found as (
    select details.*, search.word, strpos(lower(role_overview), lower(word)) as place
    from public_jobs.job_details as details
    inner join published using (id)
    cross join search
)

select
    word,
    job_title,
    substr(role_overview, greatest(place - 30, 1), 80) as excerpt,
    public_id,
    job_url
from found
where place > 0
order by word, job_title, public_id;
