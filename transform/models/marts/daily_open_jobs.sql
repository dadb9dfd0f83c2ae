with periods as (
    select
        periods.*,
        listings.listed_at
    from {{ ref('publication_periods') }} as periods
    inner join {{ ref('stg_listings') }} as listings using (organisation)
),

placed as (
    select
        periods.organisation,
        periods.opened_after,
        periods.opened_by,
        periods.closed_after,
        periods.closed_by,
        periods.listed_at,
        coalesce(versions.department, 'not given') as department,
        coalesce(versions.location, 'not given') as location,
        coalesce(versions.in_force_from, periods.opened_by) as in_force_from,
        coalesce(versions.in_force_until, cast('9999-12-31' as timestamp)) as in_force_until
    from periods
    left join {{ ref('int_job_versions') }} as versions using (job_key)
),

-- Open is what the last listing of a day shows, or the last one before it.
open_on as (
    select
        organisation,
        department,
        location,
        {{ each_day(
            'cast(greatest(opened_by, in_force_from) as date)',
            "least(
                cast(listed_at as date),
                cast(closed_by as date) - 1,
                cast(in_force_until as date) - 1
            )"
        ) }} as day
    from placed
),

events as (
    select day, organisation, department, location, 1 as is_open, 0 as opened, 0 as closed
    from open_on
    union all
    select cast(opened_by as date), organisation, department, location, 0, 1, 0
    from placed
    where
        opened_after is not null
        and opened_by >= in_force_from
        and opened_by < in_force_until
    union all
    select cast(closed_by as date), organisation, department, location, 0, 0, 1
    from placed
    where
        closed_by is not null
        and closed_after >= in_force_from
        and closed_after < in_force_until
)

select
    organisation,
    day,
    department,
    location,
    cast(sum(is_open) as bigint) as open_jobs,
    cast(sum(opened) as bigint) as opened,
    cast(sum(closed) as bigint) as closed
from events
group by organisation, day, department, location
