{%- set of_details = ['years_experience', 'primary_language', 'education_level'] %}

with periods as (
    select
        organisation,
        job_key,
        id,
        count(*) as periods,
        max(case when is_open then 1 else 0 end) = 1 as is_open,
        min(opened_by) as opened_by,
        max(case when period = 1 then opened_after end) as opened_after,
        max(closed_after) as last_closed_after,
        max(closed_by) as last_closed_by,
        sum(days_open_at_least) as days_open,
        max(updated_at) as updated_at
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }}
    group by organisation, job_key, id
),

-- The number of the last period is how many there are.
last_periods as (
    select periods.job_key, periods.public_id
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
    inner join periods as counted
        on periods.job_key = counted.job_key and periods.period = counted.periods
),

-- By what a job was called when it was opened: an edit does not make another job of it. Computed
-- once, because databases take it for small and would compare each opening with each closing.
openings as {{ materialized() }} (
    select
        periods.organisation,
        periods.job_key,
        periods.opened_by,
        versions.job_title,
        versions.location
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
    inner join {{ ref('public_jobs', 'public_jobs__job_versions') }} as versions
        on
            periods.job_key = versions.job_key
            and periods.opened_by >= versions.in_force_from
            and periods.opened_by < versions.in_force_until
    where periods.period = 1 and periods.opened_after is not null
),

reposts as (
    select
        openings.job_key,
        earlier.id as reposted_from,
        earlier.closed_by as reposted_after,
        row_number() over (
            partition by openings.job_key order by earlier.closed_by desc, earlier.id
        ) as nth
    from openings
    inner join {{ ref('public_jobs', 'public_jobs__publication_periods') }} as earlier
        on
            openings.organisation = earlier.organisation
            and openings.job_title = earlier.job_title
            and openings.location is not distinct from earlier.location
            and openings.job_key <> earlier.job_key
            and earlier.closed_by <= openings.opened_by
            and earlier.closed_by >= {{ days_before('openings.opened_by', var('reposted_within_days')) }}
),

jobs as (
    select
        periods.organisation,
        periods.job_key,
        periods.id,
        last_periods.public_id,
        {%- for column in fields()['jobs'] if column != 'public_id' %}
        versions.{{ column }},
        {%- endfor %}
        {%- for column in of_details %}
        versions.{{ column }},
        {%- endfor %}
        versions.salary_period,
        versions.additional_fields,
        periods.is_open,
        periods.periods,
        periods.opened_after,
        periods.opened_by,
        case when not periods.is_open then periods.last_closed_after end as closed_after,
        case when not periods.is_open then periods.last_closed_by end as closed_by,
        cast(round(cast(periods.days_open as numeric(18, 6)), 1) as {{ double() }}) as days_open,
        reposts.reposted_from,
        reposts.reposted_after,
        {{ of_known('greatest', ['periods.updated_at', 'versions.updated_at']) }} as updated_at
    from periods
    inner join last_periods using (job_key)
    left join {{ ref('public_jobs', 'public_jobs__job_versions') }} as versions
        on
            periods.job_key = versions.job_key
            and versions.in_force_until = {{ end_of_time() }}
    left join reposts on periods.job_key = reposts.job_key and reposts.nth = 1
)

select
    jobs.organisation,
    jobs.job_key,
    jobs.id,
    {%- for column in fields()['jobs'] %}
    jobs.{{ column }},
    {%- endfor %}
    {%- for column in of_details %}
    jobs.{{ column }},
    {%- endfor %}
    jobs.salary_period,
    jobs.is_open,
    jobs.periods,
    jobs.opened_after,
    jobs.opened_by,
    jobs.closed_after,
    jobs.closed_by,
    jobs.opened_after is null as was_open_before,
    jobs.days_open,
    jobs.reposted_from,
    jobs.reposted_after,
    {{ comparable_salary() }},
    {{- extra_columns() }}
    locations.city,
    locations.country,
    locations.is_remote,
    jobs.updated_at
from jobs
left join {{ locations() }} as locations on jobs.location = {{ text('locations.location') }}
