{%- set of_the_version = [
    'job_title', 'department', 'location', 'seniority_level', 'type', 'currency', 'salary_period',
    'has_salary', 'salary_low', 'salary_middle', 'salary_high',
    'annual_low', 'annual_middle', 'annual_high',
] -%}
{%- set compared = [
    'job_title', 'department', 'location', 'seniority_level', 'type', 'currency', 'salary_period',
    'min_salary', 'max_salary',
] -%}

with listings as (
    select organisation, {{ local_day('listed_at') }} as last_listed_on
    from {{ ref('public_jobs', 'public_jobs__stg_listings') }}
),

versions as (
    select
        job_key,
        in_force_from,
        {%- for column in of_the_version %}
        {{ column }},
        {%- endfor %}
        {{ pay_as_text('') }} as pay,
        {% for column in compared -%}
        coalesce(cast({{ column }} as {{ dbt.type_string() }}), '')
        {{- ' || chr(31) || ' if not loop.last }}
        {% endfor -%}
        as content
    from {{ ref('public_jobs', 'public_jobs__job_versions') }}
),

-- A version that differs in other columns begins no spell.
different as (
    select *
    from (
        select
            *,
            lag(content) over (partition by job_key order by in_force_from) as previous_content
        from versions
    ) as with_previous
    where content is distinct from previous_content
),

assignments as (
    select
        *,
        lead(in_force_from, 1, {{ end_of_time() }})
            over (partition by job_key order by in_force_from) as in_force_until
    from different
),

-- What the first build saw in a period counts from its beginning, as in daily_open_jobs.
spells as (
    select
        periods.*,
        {%- for column in of_the_version %}
        assignments.{{ column }} as in_{{ column }},
        {%- endfor %}
        assignments.pay,
        listings.last_listed_on,
        case
            when assignments.in_force_from > periods.known_by then assignments.in_force_from
            else periods.opened_by
        end as in_force_from,
        coalesce(assignments.in_force_until, {{ end_of_time() }}) as in_force_until
    from (
        select *, coalesce(built_by, opened_by) as known_by
        from {{ ref('public_jobs', 'public_jobs__publication_periods') }}
    ) as periods
    inner join listings using (organisation)
    left join assignments
        on
            periods.job_key = assignments.job_key
            and periods.known_by < assignments.in_force_until
            and coalesce(periods.closed_by, {{ end_of_time() }}) > assignments.in_force_from
)

-- Days are those of daily_open_jobs: the closing of a job whose row was removed has the time of a
-- build, which is after the listing.
select
    organisation,
    job_key,
    id,
    public_id,
    row_number() over (partition by job_key order by in_force_from) as spell,
    {%- for column in of_the_version %}
    in_{{ column }} as {{ column }},
    {%- endfor %}
    locations.city,
    locations.country,
    locations.is_remote,
    pay,
    least({{ local_day('opened_by') }}, last_listed_on) as opened_on,
    was_open_before,
    least({{ local_day('in_force_from') }}, last_listed_on) as from_day,
    case
        when closed_by is null and in_force_until = {{ end_of_time() }} then cast('9999-12-31' as date)
        else least(
            {{ local_day(of_known('least', ['closed_by', 'in_force_until'])) }}, last_listed_on
        )
    end as until_day,
    case
        when in_force_from > opened_by then 'changed'
        when opened_after is null then 'found'
        when period > 1 then 'reopened'
        else 'opened'
    end as began_as,
    case
        when closed_by is null and in_force_until = {{ end_of_time() }} then 'open'
        when closed_by is null or in_force_until < closed_by then 'changed'
        else 'closed'
    end as ended_as
from spells
left join {{ locations() }} as locations on spells.in_location = {{ text('locations.location') }}
