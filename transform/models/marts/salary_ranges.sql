with ranges as (
    select
        organisation,
        coalesce(seniority_level, 'not given') as seniority_level,
        coalesce(currency, 'not given') as currency,
        coalesce(salary_period, 'not given') as salary_period,
        least(nullif(min_salary, 0), nullif(max_salary, 0)) as low,
        greatest(nullif(min_salary, 0), nullif(max_salary, 0)) as high
    from {{ ref('open_jobs') }}
    where min_salary > 0 or max_salary > 0
)

select
    organisation,
    seniority_level,
    currency,
    salary_period,
    count(*) as jobs,
    min(low) as lowest,
    percentile_cont(0.5) within group (order by (low + high) / 2) as median,
    max(high) as highest
from ranges
group by organisation, seniority_level, currency, salary_period
