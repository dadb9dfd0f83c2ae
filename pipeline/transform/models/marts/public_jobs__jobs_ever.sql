{{ config(indexes=[{'columns': ['job_key']}] if target.type == 'postgres' else []) }}
{%- set of_the_period = [
    'period', 'is_open', 'was_open_before', 'opened_after', 'opened_on', 'open_since', 'shown_from',
    'closed_after', 'closed_by', 'closed_on', 'days_open_at_least', 'days_open_at_most',
] -%}
{%- set periods = ref('public_jobs', 'public_jobs__job_periods') -%}

with counted as (
    select
        job_key,
        max(period) as period,
        max(case when period = 1 then opened_after end) as first_opened_after,
        max(case when period = 1 then opened_on end) as first_opened_on,
        min(shown_from) as first_shown_from,
        sum(days_open_at_least) as days_open_in_all,
        max(updated_at) as updated_at
    from {{ periods }}
    group by job_key
),

-- By what a job was called when it was opened: an edit does not make another job of it. Computed
-- once, because databases take it for small and would compare each opening with each closing.
first_openings as {{ materialized() }} (
    select periods.organisation, periods.job_key, periods.shown_from, versions.job_title, versions.location
    from {{ periods }} as periods
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_versions') }} as versions
        on
            periods.job_key = versions.job_key
            and periods.shown_from >= versions.in_force_from
            and periods.shown_from < versions.in_force_until
    where periods.period = 1 and periods.opened_after is not null
),

reposts as (
    select
        first_openings.job_key,
        earlier.id as reposted_from,
        earlier.closed_by as reposted_after,
        row_number() over (
            partition by first_openings.job_key order by earlier.closed_by desc, earlier.id
        ) as nth
    from first_openings
    inner join {{ periods }} as earlier
        on
            first_openings.organisation = earlier.organisation
            and first_openings.job_title = earlier.job_title
            and first_openings.location is not distinct from earlier.location
            and first_openings.job_key <> earlier.job_key
            and earlier.closed_by <= first_openings.shown_from
            and earlier.closed_by >= {{ days_before('first_openings.shown_from', var('reposted_within_days')) }}
),

changes as (
    select job_key, max(changed_by) as last_changed_by
    from {{ ref('public_jobs', 'public_jobs__stg_changes') }}
    group by job_key
),

medians as (
    select distinct organisation, value, median_days
    from {{ ref('public_jobs', 'public_jobs__time_to_close') }}
    where dimension = 'department'
)

select
    periods.organisation,
    periods.job_key,
    periods.id,
    periods.public_id,
    {{- of('versions', short_columns() + pay_columns() + ['job_url', 'apply_url']) }}
    locations.city,
    locations.country,
    locations.is_remote,
    {{- of('periods', of_the_period) }}
    periods.surely_open_until as last_seen_at,
    medians.median_days as department_median_days,
    counted.first_opened_after,
    counted.first_opened_on,
    counted.first_shown_from,
    cast(round(cast(counted.days_open_in_all as numeric(18, 6)), 1) as {{ double() }}) as days_open_in_all,
    reposts.reposted_from,
    reposts.reposted_after,
    changes.last_changed_by,
    {{- of('versions', extra_names()) }}
    versions.version,
    versions.detail_recorded_at,
    {{ of_known('greatest', ['counted.updated_at', 'versions.recorded_at']) }} as updated_at
from {{ periods }} as periods
inner join counted on periods.job_key = counted.job_key and periods.period = counted.period
left join {{ ref('public_jobs', 'public_jobs__stg_job_versions') }} as versions
    on periods.job_key = versions.job_key and versions.in_force_until = {{ end_of_time() }}
left join medians
    on periods.organisation = medians.organisation and {{ or_not_given('versions.department') }} = medians.value
left join changes on periods.job_key = changes.job_key
left join reposts on periods.job_key = reposts.job_key and reposts.nth = 1
left join {{ locations() }} as locations on versions.location = {{ text('locations.location') }}
