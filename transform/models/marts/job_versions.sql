{{ config(materialized='view') }}

-- The first known version stands for all time before it, and no bound is null: DuckDB joins by
-- comparisons fast, and by `or` slowly.
with numbered as (
    select
        *,
        row_number() over (partition by job_key order by dbt_valid_from) as version,
        lead(listed_at) over (partition by job_key order by dbt_valid_from) as next_listed_at
    from {{ ref('stg_job_history') }}
)

select
    organisation,
    job_key,
    id,
    {%- for column in fields()['jobs'] %}
    {{ column }},
    {%- endfor %}
    additional_fields,
    {{ comparable_salary(of_a_year=false) }},
    version,
    case when version > 1 then listed_at else cast('0001-01-01' as timestamp) end as in_force_from,
    coalesce(next_listed_at, cast('9999-12-31' as timestamp)) as in_force_until
from numbered
