-- What is open at the end of the latest day is what is published now, as it is now.
with of_the_day as (
    select job_key, version
    from {{ ref('public_jobs', 'public_jobs__open_jobs_by_day') }}
    where is_latest_day
),

published as (
    select job_key, version
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
)

select coalesce(of_the_day.job_key, published.job_key) as job_key
from of_the_day
full outer join published on of_the_day.job_key = published.job_key
where of_the_day.job_key is null or published.job_key is null or of_the_day.version is distinct from published.version
