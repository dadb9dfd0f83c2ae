-- What the jobs were in the latest listing, as all other tables have it: a load without a new listing
-- may hold edits already, which count from the next one.
with changes as (
    select job_key, max(changed_by) as last_changed_by
    from {{ ref('public_jobs', 'public_jobs__stg_field_changes') }}
    group by job_key
),

jobs as (
    select
        publications.organisation,
        publications.job_key,
        publications.id,
        publications.public_id,
        {%- for column in fields()['jobs'] if column != 'public_id' %}
        versions.{{ column }},
        {%- endfor %}
        {%- for column in fields()['job_details'] %}
        versions.{{ column }},
        {%- endfor %}
        versions.salary_period,
        versions.additional_fields,
        periods.opened_after,
        periods.opened_by,
        publications.last_seen_at,
        periods.was_open_before,
        periods.days_open_at_least as days_open,
        time_to_close.median_days as department_median_days,
        changes.last_changed_by,
        {{ of_known('greatest', ['periods.updated_at', 'versions.updated_at']) }} as updated_at
    from {{ ref('public_jobs', 'public_jobs__stg_publications') }} as publications
    left join {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
        on publications.job_key = periods.job_key and periods.is_open
    left join {{ ref('public_jobs', 'public_jobs__stg_open_versions') }} as versions
        on publications.job_key = versions.job_key
    left join changes on publications.job_key = changes.job_key
    left join {{ ref('public_jobs', 'public_jobs__time_to_close') }} as time_to_close
        on
            publications.organisation = time_to_close.organisation
            and time_to_close.dimension = 'department'
            and time_to_close.value = {{ or_not_given('versions.department') }}
    where publications.is_published
)

select
    jobs.*,
    {{ comparable_salary() }},
    {{- extra_columns() }}
    locations.city,
    locations.country,
    locations.is_remote
from jobs
left join {{ locations() }} as locations on jobs.location = {{ text('locations.location') }}
