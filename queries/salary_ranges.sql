-- What do roles pay, by seniority and currency?
-- Amounts in different currencies are never added or compared. The API does not say whether an
-- amount is for a year, a month or an hour. A range with one end counts as that amount.
with ranges as (
    select
        coalesce(nullif(currency, ''), 'not given') as currency,
        coalesce(nullif(seniority_level, ''), 'not given') as seniority_level,
        least(nullif(min_salary, 0), nullif(max_salary, 0)) as low,
        greatest(nullif(min_salary, 0), nullif(max_salary, 0)) as high
    from public_jobs.jobs
    join public_jobs.job_publications using (id)
    where unpublished_at is null
      and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
      and (min_salary > 0 or max_salary > 0)
)

select
    currency,
    seniority_level,
    count(*) as roles,
    min(low) as lowest,
    percentile_cont(0.5) within group (order by (low + high) / 2) as median,
    max(high) as highest
from ranges
group by currency, seniority_level
order by currency, median, seniority_level;
