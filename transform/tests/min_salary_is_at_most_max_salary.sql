-- The API may send such a range; salary_ranges takes the ends in their order.
{{ config(severity='warn') }}

select job_key, min_salary, max_salary
from {{ ref('open_jobs') }}
where min_salary > max_salary
