-- The API may send such a range; salary_ranges takes the ends in their order.
{{ config(severity='warn') }}

select job_key, min_salary, max_salary
from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
where min_salary > max_salary and max_salary > 0
