-- Every published job is in open_jobs exactly once, and nothing else is. The rule is written out
-- here once more, from the raw tables, so that the two have to agree.
with raw as (
    {{ raw('job_publications', ['id', 'last_seen_at', 'unpublished_at']) }}
),

published as (
    select job_key
    from raw
    where
        unpublished_at is null
        and last_seen_at = (
            select max(latest.last_seen_at)
            from raw as latest
            where latest.organisation = raw.organisation
        )
),

counted as (
    select job_key, count(*) as times
    from {{ ref('open_jobs') }}
    group by job_key
)

select job_key, counted.times
from published
full outer join counted using (job_key)
where published.job_key is null or counted.times is null or counted.times <> 1
