-- Every published job is in open_jobs exactly once, and nothing else is. The rule is written out
-- here once more, from the raw tables, so that the two have to agree.
with raw as (
    {{ raw('job_publications', ['last_seen_at', 'unpublished_at']) }}
),

latest as (
    select organisation, max(last_seen_at) as last_seen_at
    from raw
    group by organisation
),

published as (
    select raw.job_key
    from raw
    inner join latest using (organisation, last_seen_at)
    where raw.unpublished_at is null
),

counted as (
    select job_key, count(*) as times
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
    group by job_key
)

select job_key, counted.times
from published
full outer join counted using (job_key)
where published.job_key is null or counted.times is null or counted.times <> 1
