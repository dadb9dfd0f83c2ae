-- What do roles pay, by seniority and currency?
--
-- lowest and highest are the ends of the ranges that are offered, median is that of their middles.
-- Amounts in two currencies are never added up or compared. The API does not tell whether an amount
-- is for a year, a month or an hour: if your postings differ in that, no row here means anything.
-- A range with one end counts as that amount; an end of 0 counts as none, see
-- roles_without_salary.sql for those that have neither.
with ranges as (
    select
        coalesce(nullif(currency, ''), 'not given') as currency,
        coalesce(nullif(seniority_level, ''), 'not given') as seniority_level,
        coalesce(nullif(min_salary, 0), max_salary) as low,
        coalesce(nullif(max_salary, 0), min_salary) as high
    from public_jobs.jobs
    where is_published and (min_salary > 0 or max_salary > 0)
)

select
    currency,
    seniority_level,
    count(*) as roles,
    min(low) as lowest,
    cast(percentile_cont(0.5) within group (order by (low + high) / 2) as decimal(38, 2)) as median,
    max(high) as highest
from ranges
group by currency, seniority_level
order by currency, median, seniority_level;
