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
        {{ utc_of_local_day('dates.week') }} as week_start,
        {{ utc_of_local_day('cast(' ~ dbt.dateadd('day', 7, 'dates.week') ~ ' as date)') }} as week_end
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
            dates.week >= {{ first_day_of('week', local_time('organisations.first_listed_at')) }}
            and dates.week <= {{ local_day('latest.last_listed_at') }}
),

-- What the first build saw in a period counts from its beginning.
stays as (
    select
        periods.organisation,
        periods.job_key,
        periods.id,
        periods.public_id,
        periods.is_open,
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

-- In the week of an organisation's latest listing, and after it, what that shows is open: the
-- closing of a job whose row was removed has the time of a build, which is later.
select
    weeks.organisation,
    weeks.week,
    stays.job_key,
    stays.id,
    stays.public_id,
    {%- for column in of_the_version %}
    stays.{{ column }},
    {%- endfor %}
    stays.opened_after,
    stays.opened_by,
    {{ days_between('stays.opened_by', 'least(weeks.week_end, weeks.last_listed_at)') }}
        as days_open,
    weeks.last_listed_at < weeks.week_start as is_carried_forward,
    weeks.week_end > weeks.all_listed_at as has_all_organisations
from weeks
inner join stays
    on
        weeks.organisation = stays.organisation
        and weeks.week_end > stays.in_force_from
        and weeks.week_end <= stays.in_force_until
        and (
            stays.is_open
            or (weeks.week_end <= stays.closed_by and weeks.week_end <= weeks.last_listed_at)
        )
