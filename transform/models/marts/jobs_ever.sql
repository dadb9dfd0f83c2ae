{%- set of_details = ['years_experience', 'primary_language', 'education_level'] %}

with periods as (
    select
        organisation,
        job_key,
        id,
        count(*) as periods,
        max(case when is_open then 1 else 0 end) = 1 as is_open,
        min(opened_by) as first_opened_by,
        max(case when period = 1 then opened_after end) as first_opened_after,
        max(closed_after) as last_closed_after,
        max(closed_by) as last_closed_by,
        sum(days_open_at_least) as days_open
    from {{ ref('publication_periods') }}
    group by organisation, job_key, id
),

last_periods as (
    select periods.job_key, periods.public_id
    from {{ ref('publication_periods') }} as periods
    inner join periods as counted
        on periods.job_key = counted.job_key and periods.period = counted.periods
),

reposts as (
    select
        periods.job_key,
        earlier.id as reposted_from,
        row_number() over (
            partition by periods.job_key order by earlier.closed_by desc, earlier.id
        ) as place
    from {{ ref('publication_periods') }} as periods
    inner join {{ ref('publication_periods') }} as earlier
        on
            periods.organisation = earlier.organisation
            and periods.job_title = earlier.job_title
            and periods.location = earlier.location
            and periods.job_key <> earlier.job_key
            and earlier.closed_by <= periods.opened_by
            and earlier.closed_by >= {{ days_before('periods.opened_by', var('reposted_within_days')) }}
    where periods.period = 1 and periods.opened_after is not null
),

-- Texts are joined to the last version afterwards, because all of them do not fit in memory.
last_details as (
    select
        dbt_scd_id,
        row_number() over (partition by job_key order by dbt_valid_from desc) as place
    from {{ ref('stg_job_detail_history') }}
),

details as (
    select history.*
    from {{ ref('stg_job_detail_history') }} as history
    inner join last_details using (dbt_scd_id)
    where last_details.place = 1
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
        details.{{ column }},
        {%- endfor %}
        {{ salary_period('versions', 'details') }} as salary_period,
        periods.is_open,
        periods.periods,
        periods.first_opened_after,
        periods.first_opened_by,
        case when not periods.is_open then periods.last_closed_after end as closed_after,
        case when not periods.is_open then periods.last_closed_by end as closed_by,
        cast(round(cast(periods.days_open as numeric(18, 6)), 1) as {{ double() }}) as days_open,
        reposts.reposted_from
    from periods
    inner join last_periods using (job_key)
    left join {{ ref('job_versions') }} as versions
        on
            periods.job_key = versions.job_key
            and versions.in_force_until = cast('9999-12-31' as timestamp)
    left join details on periods.job_key = details.job_key
    left join reposts on periods.job_key = reposts.job_key and reposts.place = 1
)

select
    jobs.*,
    {{ comparable_salary() }},
    locations.city,
    locations.country,
    locations.is_remote
from jobs
left join {{ ref('locations') }} as locations using (location)
