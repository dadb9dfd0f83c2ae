with summaries as (
    {{ cleaned(ref('public_jobs', 'public_jobs__published_jobs'), 'jobs') }}
),

details as (
    {{ cleaned(ref('public_jobs', 'public_jobs__published_job_details'), 'job_details') }}
),

jobs as (
    select
        publications.organisation,
        publications.job_key,
        publications.id,
        publications.public_id,
        {%- for column in fields()['jobs'] if column != 'public_id' %}
        summaries.{{ column }},
        {%- endfor %}
        {%- for column in fields()['job_details'] %}
        details.{{ column }},
        {%- endfor %}
        coalesce({{ salary_period('summaries') }}, {{ salary_period('details') }}) as salary_period,
        coalesce(details.additional_fields, summaries.additional_fields) as additional_fields,
        periods.opened_after,
        periods.opened_by,
        publications.last_seen_at,
        periods.opened_after is null as was_open_before,
        periods.days_open_at_least as days_open,
        time_to_close.median_days as department_median_days,
        case when versions.in_force_from > {{ beginning_of_time() }} then versions.in_force_from end
            as last_changed_by,
        {{ of_known('greatest', ['periods.updated_at', 'versions.updated_at']) }} as updated_at
    from {{ ref('public_jobs', 'public_jobs__stg_publications') }} as publications
    left join summaries using (job_key)
    left join details using (job_key)
    left join {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
        on publications.job_key = periods.job_key and periods.is_open
    left join {{ ref('public_jobs', 'public_jobs__job_versions') }} as versions
        on
            publications.job_key = versions.job_key
            and versions.in_force_until = {{ end_of_time() }}
    left join {{ ref('public_jobs', 'public_jobs__time_to_close') }} as time_to_close
        on
            publications.organisation = time_to_close.organisation
            and time_to_close.dimension = 'department'
            and time_to_close.value = {{ or_not_given('summaries.department') }}
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
left join {{ locations() }} as locations using (location)
