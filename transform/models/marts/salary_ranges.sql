select
    organisation,
    coalesce(seniority_level, 'not given') as seniority_level,
    coalesce(currency, 'not given') as currency,
    coalesce(salary_period, 'not given') as salary_period,
    count(*) as jobs,
    min(salary_low) as lowest,
    percentile_cont(0.5) within group (order by salary_middle) as median,
    max(salary_high) as highest
from {{ ref('open_jobs') }}
where has_salary
group by 1, 2, 3, 4
