{# The jobs that were open at the end of each week or month, with the values that were in force then. #}
{% macro open_jobs_at_end_of(part) -%}
{%- set of_the_version = [
    'job_title', 'department', 'location', 'seniority_level', 'type',
    'years_experience', 'primary_language', 'education_level',
    'currency', 'salary_period', 'has_salary', 'salary_low', 'salary_middle', 'salary_high',
    'annual_low', 'annual_middle', 'annual_high',
] -%}
{%- set next_day = dbt.dateadd('day', 7, 'dates.week') if part == 'week' else dbt.dateadd('month', 1, 'dates.month') -%}

with organisations as (
    select
        periods.organisation,
        min(periods.opened_by) as first_listed_at,
        max(listings.listed_at) as last_listed_at
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
    inner join {{ ref('public_jobs', 'public_jobs__stg_listings') }} as listings using (organisation)
    group by periods.organisation
),

-- All organisations end in the same week or month, so that their sum falls only when jobs are closed.
parts as (
    select
        organisations.organisation,
        organisations.last_listed_at,
        latest.all_listed_at,
        dates.{{ part }},
        {{ utc_of_local_day('dates.' ~ part) }} as start_at,
        {{ utc_of_local_day('cast(' ~ next_day ~ ' as date)') }} as end_at
    from organisations
    cross join (
        select max(first_listed_at) as all_listed_at, max(last_listed_at) as last_listed_at
        from organisations
    ) as latest
    inner join (
        select distinct {{ part }}
        from {{ ref('public_jobs', 'public_jobs__dates') }}
    ) as dates
        on
            dates.{{ part }} >= {{ first_day_of(part, local_time('organisations.first_listed_at')) }}
            and dates.{{ part }} <= {{ local_day('latest.last_listed_at') }}
),

-- What the first build saw in a period counts from its beginning.
stays as (
    select
        periods.organisation,
        periods.job_key,
        periods.id,
        periods.public_id,
        periods.is_open,
        periods.was_open_before,
        periods.opened_after,
        periods.opened_by,
        periods.closed_by,
        {%- for column in of_the_version %}
        versions.{{ column }},
        {%- endfor %}
        case
            when versions.in_force_from > coalesce(periods.built_by, periods.opened_by)
                then versions.in_force_from
            else periods.opened_by
        end as in_force_from,
        coalesce(versions.in_force_until, {{ end_of_time() }}) as in_force_until
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
    left join {{ ref('public_jobs', 'public_jobs__job_versions') }} as versions
        on
            periods.job_key = versions.job_key
            and versions.in_force_until > coalesce(periods.built_by, periods.opened_by)
)

-- In the week or month of an organisation's latest listing, and after it, what that shows is open: the
-- closing of a job whose row was removed has the time of a build, which is later.
select
    parts.organisation,
    parts.{{ part }},
    stays.job_key,
    stays.id,
    stays.public_id,
    {%- for column in of_the_version %}
    stays.{{ column }},
    {%- endfor %}
    stays.opened_after,
    stays.opened_by,
    stays.was_open_before,
    {{ days_between('stays.opened_by', 'least(parts.end_at, parts.last_listed_at)') }}
        as days_open,
    locations.city,
    locations.country,
    locations.is_remote,
    parts.last_listed_at < parts.start_at as is_carried_forward,
    parts.end_at > parts.all_listed_at as has_all_organisations
from parts
inner join stays
    on
        parts.organisation = stays.organisation
        and parts.end_at > stays.in_force_from
        and parts.end_at <= stays.in_force_until
        and (
            stays.is_open
            or (parts.end_at <= stays.closed_by and parts.end_at <= parts.last_listed_at)
        )
left join {{ locations() }} as locations on stays.location = {{ text('locations.location') }}
{%- endmacro %}
