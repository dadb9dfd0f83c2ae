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

details as (
    select
        job_key,
        {%- for column in of_details %}
        {{ column }},
        {%- endfor %}
        row_number() over (partition by job_key order by dbt_valid_from desc) as place
    from {{ ref('job_detail_history') }}
)

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
    periods.is_open,
    periods.periods,
    periods.first_opened_after,
    periods.first_opened_by,
    case when not periods.is_open then periods.last_closed_after end as closed_after,
    case when not periods.is_open then periods.last_closed_by end as closed_by,
    cast(round(cast(periods.days_open as numeric(18, 6)), 1) as float8) as days_open
from periods
inner join last_periods using (job_key)
left join {{ ref('job_versions') }} as versions
    on periods.job_key = versions.job_key and versions.in_force_until = cast('9999-12-31' as timestamp)
left join details on periods.job_key = details.job_key and details.place = 1
