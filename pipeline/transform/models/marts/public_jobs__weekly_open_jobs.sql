{%- set of_the_version = [
    'job_title', 'department', 'location', 'seniority_level', 'type',
    'years_experience', 'primary_language', 'education_level',
    'currency', 'salary_period', 'has_salary', 'salary_low', 'salary_middle', 'salary_high',
    'annual_low', 'annual_middle', 'annual_high',
] -%}

with organisations as (
    select
        periods.organisation,
        min(periods.opened_by) as first_listed_at,
        max(listings.listed_at) as last_listed_at
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
    inner join {{ ref('public_jobs', 'public_jobs__stg_listings') }} as listings using (organisation)
    group by periods.organisation
),

-- All organisations end in the same week, so that their sum falls only when jobs are closed.
weeks as (
    select
        organisations.organisation,
        organisations.last_listed_at,
        latest.all_listed_at,
        dates.week,
        cast({{ dbt.dateadd('day', 7, 'dates.week') }} as timestamp) as week_end
    from organisations
    cross join (
        select max(first_listed_at) as all_listed_at, max(last_listed_at) as last_listed_at
        from organisations
    ) as latest
    inner join (
        select distinct week
        from {{ ref('public_jobs', 'public_jobs__dates') }}
    ) as dates
        on
            dates.week >= {{ first_day_of('week', 'organisations.first_listed_at') }}
            and dates.week <= cast(latest.last_listed_at as date)
)

-- In the week of an organisation's latest listing, and after it, what that shows is open: the
-- closing of a job whose row was removed has the time of a build, which is later.
select
    weeks.organisation,
    weeks.week,
    periods.job_key,
    periods.id,
    periods.public_id,
    {%- for column in of_the_version %}
    versions.{{ column }},
    {%- endfor %}
    periods.opened_after,
    periods.opened_by,
    {{ days_between('periods.opened_by', 'least(weeks.week_end, weeks.last_listed_at)') }}
        as days_open,
    weeks.last_listed_at < cast(weeks.week as timestamp) as is_carried_forward,
    weeks.week_end > weeks.all_listed_at as has_all_organisations
from weeks
inner join {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
    on
        weeks.organisation = periods.organisation
        and weeks.week_end > periods.opened_by
        and (
            periods.is_open
            or (weeks.week_end <= periods.closed_by and weeks.week_end <= weeks.last_listed_at)
        )
left join {{ ref('public_jobs', 'public_jobs__job_versions') }} as versions
    on
        periods.job_key = versions.job_key
        and weeks.week_end > versions.in_force_from
        and weeks.week_end <= versions.in_force_until
