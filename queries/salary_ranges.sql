-- What do roles pay, by seniority, currency and salary period?
-- Amounts in different currencies or periods are never added or compared. The API does not document
-- what a salary is paid for: name the field here if it sends it under another name than salaryPeriod.
-- A range with one end counts as that amount.
with ranges as (
    select
        coalesce(nullif(jobs.currency, ''), 'not given') as currency,
        coalesce(
            jobs.additional_fields::json ->> 'salaryPeriod',
            details.additional_fields::json ->> 'salaryPeriod',
            'not given'
        ) as salary_period,
        coalesce(nullif(jobs.seniority_level, ''), 'not given') as seniority_level,
        coalesce(nullif(jobs.min_salary, 0), jobs.max_salary) as one_end,
        coalesce(nullif(jobs.max_salary, 0), jobs.min_salary) as other_end
    from public_jobs.jobs
    join public_jobs.job_publications using (id)
    left join public_jobs.job_details as details using (id)
    where unpublished_at is null
      and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
      and (jobs.min_salary > 0 or jobs.max_salary > 0)
)

select
    currency,
    salary_period,
    seniority_level,
    count(*) as roles,
    min(least(one_end, other_end)) as lowest,
    percentile_cont(0.5) within group (order by (one_end + other_end) / 2) as median,
    max(greatest(one_end, other_end)) as highest
from ranges
group by currency, salary_period, seniority_level
order by currency, salary_period, median, seniority_level;
