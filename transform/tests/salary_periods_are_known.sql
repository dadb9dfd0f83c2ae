-- The variable periods_in_a_year lacks one that the API sends, so its jobs have no annual pay.
{{ config(severity='warn') }}

select organisation, salary_period, count(*) as jobs
from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
where has_salary and salary_period is not null and annual_middle is null
group by organisation, salary_period
