{%- set group = 'organisation, seniority_level, currency, salary_period' -%}

with ranges as (
    select
        organisation,
        {{ or_not_given('seniority_level') }} as seniority_level,
        {{ or_not_given('currency') }} as currency,
        {{ or_not_given('salary_period') }} as salary_period,
        salary_low,
        salary_middle,
        salary_high
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
    where has_salary
),

-- Not every database has a function for the median of a group.
ordered as (
    select
        *,
        row_number() over (partition by {{ group }} order by salary_middle) as nth,
        count(*) over (partition by {{ group }}) as jobs_of_group
    from ranges
)

select
    {{ group }},
    count(*) as jobs,
    min(salary_low) as lowest,
    avg(case when 2 * nth between jobs_of_group and jobs_of_group + 2 then salary_middle end)
        as median,
    max(salary_high) as highest
from ordered
group by {{ group }}
