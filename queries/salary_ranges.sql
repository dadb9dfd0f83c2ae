-- What do roles pay, by seniority and currency?
-- Amounts in different currencies are never added or compared. The API does not say whether an
-- amount is for a year, a month or an hour. A range with one end counts as that amount.
with ranges as (
    select
        coalesce(nullif(currency, ''), 'not given') as currency,
        coalesce(nullif(seniority_level, ''), 'not given') as seniority_level,
        coalesce(nullif(min_salary, 0), max_salary) as one_end,
        coalesce(nullif(max_salary, 0), min_salary) as other_end
    from public_jobs.jobs
    join public_jobs.job_publications using (id)
    where unpublished_at is null
      and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
      and (min_salary > 0 or max_salary > 0)
),

-- Not every database has a function for the median of a group.
ordered as (
    select
        *,
        row_number() over (
            partition by currency, seniority_level order by one_end + other_end
        ) as place,
        count(*) over (partition by currency, seniority_level) as number_of_roles
    from ranges
)

select
    currency,
    seniority_level,
    max(number_of_roles) as roles,
    min(least(one_end, other_end)) as lowest,
    avg(
        case
            when 2 * place between number_of_roles and number_of_roles + 2
                then (one_end + other_end) / 2
        end
    ) as median,
    max(greatest(one_end, other_end)) as highest
from ordered
group by currency, seniority_level
order by currency, median, seniority_level;
