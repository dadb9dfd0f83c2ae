-- The last day ends with what is published now.
with latest as (
    select organisation, department, location, seniority_level, type, open_jobs
    from {{ ref('public_jobs', 'public_jobs__daily_open_jobs') }}
    where open_jobs > 0 and day = (select max(day) from {{ ref('public_jobs', 'public_jobs__daily_open_jobs') }})
),

published as (
    select
        organisation,
        {{ or_not_given('department') }} as department,
        {{ or_not_given('location') }} as location,
        {{ or_not_given('seniority_level') }} as seniority_level,
        {{ or_not_given('type') }} as type,
        count(*) as open_jobs
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
    group by 1, 2, 3, 4, 5
)

select organisation, department, location
from latest
full outer join published
    using (organisation, department, location, seniority_level, type, open_jobs)
where latest.open_jobs is null or published.open_jobs is null
