{{ config(materialized='table' if copies_texts() else 'view') }}
with latest as (
    select max(listed_at) as listed_at
    from {{ in_this_file(ref('public_jobs', 'public_jobs__listings')) }}
),

events as (
    select
        organisation,
        'opened' as event,
        opened_after as happened_after,
        opened_by as happened_by,
        job_key,
        id,
        cast(null as {{ dbt.type_string() }}) as field,
        cast(null as {{ dbt.type_string() }}) as old_value,
        cast(null as {{ dbt.type_string() }}) as new_value
    from {{ in_this_file(ref('public_jobs', 'public_jobs__publication_periods')) }}
    where opened_after is not null
    union all
    select organisation, 'closed', closed_after, closed_by, job_key, id, null, null, null
    from {{ in_this_file(ref('public_jobs', 'public_jobs__publication_periods')) }}
    where closed_by is not null
    union all
    select
        organisation,
        case when field in ('department', 'location', 'seniority_level', 'type') then 'moved' else 'edited' end,
        changed_after,
        changed_by,
        job_key,
        id,
        field,
        old_value,
        new_value
    from {{ in_this_file(ref('public_jobs', 'public_jobs__job_changes')) }}
)

select
    events.organisation,
    events.event,
    events.happened_after,
    events.happened_by,
    events.job_key,
    events.id,
    jobs.public_id,
    jobs.job_title,
    jobs.department,
    jobs.location,
    events.field,
    events.old_value,
    events.new_value
from events
inner join {{ in_this_file(ref('public_jobs', 'public_jobs__jobs_ever')) }} as jobs using (job_key)
cross join latest
-- An hour less than seven days, because a weekly sync may begin some minutes early or late: the
-- listing of a week ago ends the week before.
where events.happened_by > cast({{ dbt.dateadd('hour', -167, 'latest.listed_at') }} as timestamp)
