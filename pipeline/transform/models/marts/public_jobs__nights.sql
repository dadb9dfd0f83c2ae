{%- set publications = ref('public_jobs', 'public_jobs__publication_history') -%}
{%- set details = ref('public_jobs', 'public_jobs__job_detail_history') -%}

with built as (select * from {{ ref('public_jobs', 'public_jobs__stg_built_listings') }}),

-- What no build saw is known if it dates an opening or a closing.
known as (
    select organisation, listed_at from built
    {%- for bound in ('shown_from', 'closed_after') %}
    union all
    select organisation, {{ bound }} from {{ ref('public_jobs', 'public_jobs__stg_periods') }}
    {%- endfor %}
    {%- for bound in ('opened_after', 'unpublished_at') %}
    union all
    select organisation, {{ bound }} from {{ publications }}
    {%- endfor %}
),

listed as (
    select
        organisation, day, count(distinct listed_at) as listings, max(listed_at) as last_listed_at,
        min(listed_at) as first_listed_at
    from (select *, {{ local_day('listed_at') }} as day from known) as dated
    where listed_at is not null
    group by organisation, day
),

-- Of the jobs that were missing before the state was lost, nobody knows anything any more.
lost_states as (
    select organisation, first_seen_at as listed_at, min(dbt_valid_from) as recorded_at
    from {{ publications }}
    where opened_after is null
    group by organisation, first_seen_at
),

missing as (
    select
        versions.organisation,
        versions.dbt_scd_id,
        versions.dbt_valid_from as begins_at,
        {{ of_known('least', ['min(lost_states.recorded_at)', 'min(versions.dbt_valid_to)']) }} as ends_at
    from {{ publications }} as versions
    left join lost_states
        on
            versions.organisation = lost_states.organisation
            and versions.last_seen_at < lost_states.listed_at
    where not versions.is_published and versions.unpublished_at is null
    group by versions.organisation, versions.dbt_scd_id, versions.dbt_valid_from
),

-- Each snapshot of a build has one time, and that of the listing is the last.
steps as (
    select organisation, recorded_at, sum(jobs) as jobs, sum(details) as details
    from (
        select organisation, begins_at as recorded_at, 1 as jobs, 0 as details from missing
        union all
        select organisation, ends_at, -1, 0 from missing where ends_at is not null
        union all
        select organisation, dbt_valid_from, 0, 1 from {{ publications }} where is_published
        union all
        select organisation, dbt_valid_to, 0, -1
        from {{ publications }}
        where is_published and dbt_valid_to is not null
        union all
        select organisation, dbt_valid_from, 0, -1 from {{ details }}
        union all
        select organisation, dbt_valid_to, 0, 1 from {{ details }} where dbt_valid_to is not null
        union all
        select organisation, recorded_at, 0, 0 from built
    ) as each_step
    group by organisation, recorded_at
),

levels as (
    select
        organisation,
        recorded_at,
        sum(jobs) over (partition by organisation order by recorded_at) as missing_jobs,
        sum(details) over (partition by organisation order by recorded_at) as missing_details
    from steps
),

counted as (
    select
        built.*,
        levels.missing_jobs,
        levels.missing_details,
        levels.missing_jobs > 0 or levels.missing_details > 0 as has_gaps,
        count(*) over (partition by built.organisation, built.listed_on) as listings,
        row_number() over (
            partition by built.organisation, built.listed_on order by built.listed_at desc
        ) as nth_from_end,
        max(case when levels.missing_jobs > 0 or levels.missing_details > 0 then null else built.listed_at end)
            over (partition by built.organisation order by built.listed_at) as complete_at
    from built
    inner join levels on built.organisation = levels.organisation and built.recorded_at = levels.recorded_at
),

last_built as (
    select *
    from (
        select
            *,
            min(case when has_gaps then listed_at end)
                over (partition by organisation, complete_at) as missing_since
        from counted
    ) as with_since
    where nth_from_end = 1
),

-- All organisations end on the same day, as in open_jobs_by_day.
organisations as (
    select organisation, min(day) as first_day, max(max(day)) over () as last_day
    from listed
    group by organisation
)

select
    organisations.organisation,
    dates.day,
    case
        when listed.listings is null then 'no data'
        when last_built.listings is null then 'not built'
        when last_built.has_gaps then 'gaps'
        else 'complete'
    end as outcome,
    coalesce(listed.listings, 0) as listings,
    coalesce(last_built.listings, 0) as built_listings,
    max(listed.last_listed_at) over (partition by organisations.organisation order by dates.day)
        as last_listed_at,
    cast(last_built.missing_jobs as bigint) as missing_jobs,
    cast(last_built.missing_details as bigint) as missing_details,
    case when last_built.has_gaps then last_built.missing_since end as missing_since,
    last_built.listed_at as built_listed_at,
    last_built.previous_listed_at,
    coalesce(last_built.is_latest, false) as is_latest,
    last_built.days_since_previous
from organisations
inner join {{ ref('public_jobs', 'public_jobs__dates') }} as dates
    on dates.day between organisations.first_day and organisations.last_day
left join listed on organisations.organisation = listed.organisation and dates.day = listed.day
left join last_built
    on organisations.organisation = last_built.organisation and dates.day = last_built.listed_on
