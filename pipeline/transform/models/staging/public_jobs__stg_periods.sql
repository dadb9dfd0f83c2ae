{{ config(materialized='table') }}
{%- set by_time = 'partition by organisation order by listed_at' -%}
{%- set from_then_on = by_time ~ ' rows between current row and unbounded following' -%}
{%- set history = ref('public_jobs', 'public_jobs__publication_history') -%}

-- Every time in a row is that of a complete listing, but for one: earlier versions of the tap took
-- the list that first showed a job for its first_seen_at, and for its last_seen_at while no other
-- one had shown it, also if that list was not complete.
with named_times as (
    select
        organisation,
        listed_at,
        1 as is_complete,
        1 as is_built,
        cast(null as timestamp) as none_before
    from {{ ref('public_jobs', 'public_jobs__stg_built_listings') }}
    union all
    select organisation, listed_at, 1, 0, null from {{ history }}
    union all
    select organisation, unpublished_at, 1, 0, null from {{ history }}
    union all
    -- Between these two times, the tap knew no complete listing.
    select organisation, opened_after, 1, 0, first_seen_at from {{ history }}
    union all
    select
        organisation,
        last_seen_at,
        case when last_seen_at > first_seen_at then 1 else 0 end,
        0,
        unpublished_at
    from {{ history }}
    union all
    select organisation, first_seen_at, 0, 0, null from {{ history }}
),

times as (
    select
        organisation,
        listed_at,
        max(is_complete) as is_complete,
        max(is_built) as is_built,
        max(none_before) as none_before
    from named_times
    where listed_at is not null
    group by organisation, listed_at
),

-- The time of a list that was not complete gives way to that of the next one that was.
listings as (
    select
        organisation,
        listed_at,
        case
            when
                is_complete = 0
                and max(none_before) over ({{ by_time }} rows between unbounded preceding and 1 preceding)
                > listed_at
                then min(case when is_complete = 1 then listed_at end) over ({{ from_then_on }})
            else listed_at
        end as complete_at,
        min(case when is_built = 1 then listed_at end) over ({{ from_then_on }}) as built_at
    from times
),

-- What no complete list has shown is no publication.
shown as (
    select
        history.job_key,
        history.organisation,
        history.id,
        history.public_id,
        history.opened_after,
        listings.complete_at as first_seen_at,
        history.last_seen_at,
        history.unpublished_at,
        history.is_published,
        history.listed_at,
        history.dbt_scd_id,
        history.dbt_valid_from,
        history.dbt_valid_to
    from {{ history }} as history
    inner join listings
        on
            history.organisation = listings.organisation
            and history.first_seen_at = listings.listed_at
    where history.last_seen_at >= listings.complete_at
),

history as (
    select
        *,
        lag(first_seen_at) over (partition by job_key order by dbt_valid_from)
            as previous_first_seen_at,
        lag(last_seen_at) over (partition by job_key order by dbt_valid_from)
            as previous_last_seen_at,
        lag(listed_at) over (partition by job_key order by dbt_valid_from)
            as previous_listed_at,
        lag(is_published) over (partition by job_key order by dbt_valid_from)
            as was_published,
        lag(unpublished_at) over (partition by job_key order by dbt_valid_from) is not null
            as was_closed,
        lag(dbt_valid_to) over (partition by job_key order by dbt_valid_from) < dbt_valid_from
            as was_removed
    from shown
),

-- The first listing after the tap's state began, or was lost: none before it is known, so whatever
-- it shows was opened after nothing.
first_listings as (
    select distinct organisation, first_seen_at as listed_at
    from history
    where opened_after is null
),

-- The tap asks for a job that a listing lacks, and closes it if it is gone. It does not ask for a
-- job that a lost state has forgotten: that one may be gone, too.
forgotten as (
    select distinct history.dbt_scd_id
    from history
    inner join first_listings
        on
            history.organisation = first_listings.organisation
            and history.previous_last_seen_at < first_listings.listed_at
            and history.first_seen_at > first_listings.listed_at
),

-- Each row is a version that a build saw, and each branch one history that begins a new period. In
-- all others the period goes on: the job was missing from a listing and returned, or only the
-- times are others, as after a lost or restored state.
numbered as (
    select
        history.*,
        1 + sum(
            case
                -- Open, closed and open again from one build to the next.
                when was_published and opened_after > previous_first_seen_at then 1
                -- Closed, and open again.
                when was_closed and is_published then 1
                -- Missing, and open again after a listing that is known not to have shown it, or
                -- after one from which the tap could not know.
                when not was_published and is_published and first_seen_at > previous_first_seen_at
                    and (opened_after is not null or forgotten.dbt_scd_id is not null) then 1
                -- Closed or missing, and open and closed again from one build to the next.
                when not was_published and not is_published and first_seen_at > previous_listed_at
                    and (was_closed or opened_after is not null or forgotten.dbt_scd_id is not null)
                    then 1
                else 0
            end
        ) over (partition by job_key order by dbt_valid_from rows unbounded preceding) as period
    from history
    left join forgotten using (dbt_scd_id)
),

numbered_within as (
    select
        *,
        row_number() over (partition by job_key, period order by dbt_valid_from) as nth,
        row_number() over (partition by job_key, period order by dbt_valid_from desc)
            as nth_from_end,
        max(last_seen_at) over (partition by job_key, period) as last_shown_at,
        min(unpublished_at) over (partition by job_key, period) as first_unpublished_at,
        max(dbt_valid_from) over (partition by job_key, period) as last_changed_at,
        min(dbt_valid_from) over (partition by job_key, period) as first_recorded_at,
        -- A build took the job for closed, and another one saw it again.
        max(case when is_published and goes_on and (was_removed or not was_published) then listed_at end)
            over (partition by job_key, period) as returned_by
    from (
        select *, lag(period) over (partition by job_key order by dbt_valid_from) = period as goes_on
        from numbered
    ) as ordered
),

-- The tap knows no listing before a lost state, but the history does: none of those showed a job
-- that it does not have. A listing that the tap has forgotten may have been loaded by half.
beginnings as (
    select
        versions.job_key,
        versions.period,
        versions.opened_after as tap_opened_after,
        listings.previous_listed_at as listed_before,
        case
            when versions.first_seen_at <= versions.previous_listed_at then versions.listed_at
            else versions.first_seen_at
        end as opened_by,
        lead(versions.opened_after) over (partition by versions.job_key order by versions.period)
            as next_opened_after,
        lead(versions.listed_at) over (partition by versions.job_key order by versions.period)
            as next_listed_at,
        lead(listings.previous_listed_at)
            over (partition by versions.job_key order by versions.period) as listed_before_next
    from numbered_within as versions
    left join {{ ref('public_jobs', 'public_jobs__stg_built_listings') }} as listings
        on
            versions.organisation = listings.organisation
            and versions.listed_at = listings.listed_at
    where versions.nth = 1
),

ends as (
    select
        versions.*,
        beginnings.tap_opened_after,
        beginnings.listed_before,
        beginnings.opened_by,
        beginnings.next_opened_after,
        beginnings.listed_before_next,
        case
            when not versions.is_published then 'seen'
            when beginnings.next_listed_at is not null then 'between builds'
            when versions.dbt_valid_to is not null then 'row removed'
        end as closing
    from numbered_within as versions
    inner join beginnings using (job_key, period)
    where versions.nth_from_end = 1
),

bounded as (
    select
        organisation,
        job_key,
        id,
        public_id,
        period,
        first_recorded_at,
        returned_by,
        tap_opened_after,
        listed_before,
        opened_by,
        case closing
            when 'seen' then last_shown_at
            when 'between builds' then listed_before_next
            when 'row removed' then listed_at
        end as closed_after,
        case closing
            when 'seen' then coalesce(first_unpublished_at, listed_at)
            when 'between builds' then next_opened_after
            when 'row removed' then cast(dbt_valid_to as timestamp)
        end as closed_by,
        -- Only a closing that a build saw was known when the last version began.
        cast(
            case closing when 'seen' then last_changed_at else coalesce(dbt_valid_to, last_changed_at) end
            as timestamp
        ) as updated_at
    from ends
),

opened as (
    select
        bounded.*,
        {{ of_known('greatest', [
            'coalesce(tap_opened_after, case when listed_before < opened_by then listed_before end)',
            'lag(closed_by) over (partition by job_key order by period)'
        ]) }} as opened_after,
        coalesce(bounded.closed_after, listings.listed_at) as open_until,
        {{ local_day('listings.listed_at') }} as last_listed_on
    from bounded
    left join {{ ref('public_jobs', 'public_jobs__stg_listings') }} as listings using (organisation)
)

select
    opened.organisation,
    opened.job_key,
    opened.id,
    opened.public_id,
    cast(opened.period as bigint) as period,
    max(opened.period) over (partition by opened.job_key) = opened.period as is_last_period,
    opened.closed_by is null as is_open,
    opened.opened_after is null as was_open_before,
    opened.opened_after,
    case when opened.opened_after is not null then {{ local_day('opened.opened_by') }} end as opened_on,
    {{ local_day('opened.opened_by') }} as open_since,
    opened.opened_by as shown_from,
    opened.closed_after,
    opened.closed_by,
    -- The closing of a job whose row was removed has the time of a build, which is after the listing.
    case when opened.closed_by is not null then least({{ local_day('opened.closed_by') }}, opened.last_listed_on) end
        as closed_on,
    opened.open_until,
    opened.returned_by,
    case
        when listings.built_at < opened.closed_by or opened.closed_by is null then listings.built_at
    end as built_by,
    {{ days_between('opened.opened_by', 'opened.open_until') }} as days_open_at_least,
    {{ days_between('opened.opened_after', 'coalesce(opened.closed_by, opened.open_until)') }}
        as days_open_at_most,
    cast(opened.first_recorded_at as timestamp) as recorded_at,
    opened.updated_at
from opened
left join listings
    on opened.organisation = listings.organisation and opened.opened_by = listings.listed_at
