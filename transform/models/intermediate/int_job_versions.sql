-- The first known version of a job stands for all time before it.
with numbered as (
    select
        *,
        row_number() over (partition by job_key order by dbt_valid_from) as version,
        lead(listed_at) over (partition by job_key order by dbt_valid_from) as in_force_until
    from {{ ref('job_history') }}
)

select
    *,
    case when version > 1 then listed_at else cast('0001-01-01' as timestamp) end as in_force_from
from numbered
