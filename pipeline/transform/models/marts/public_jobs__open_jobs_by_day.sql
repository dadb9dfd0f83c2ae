{{ config(materialized='view') }}
{%- set at_the_end = 'least(dates.end_at, listings.listed_at)' -%}
-- Each spell, once for each of its days to the latest listing.
with listings as (
    select organisation, listed_at, listed_on as last_listed_on
    from {{ in_this_file(ref('public_jobs', 'public_jobs__stg_built_listings')) }}
    where is_latest
),

first_days as (
    select max(first_day) as all_listed_on
    from (
        select min(from_day) as first_day
        from {{ in_this_file(ref('public_jobs', 'public_jobs__job_spells')) }}
        group by organisation
    ) as of_each
)

select
    spells.organisation,
    {{- of('dates', [
        'day', 'week', 'month', 'quarter', 'year',
        'is_latest_day', 'is_last_day_of_week', 'is_last_day_of_month', 'is_whole_week', 'is_whole_month',
    ]) }}
    {{- of('spells', ['job_key', 'id', 'public_id', 'spell_key'] + short_columns() + pay_columns()) }}
    {{- of('spells', ['city', 'country', 'is_remote', 'period', 'version']) }}
    {{- of('spells', ['was_open_before', 'opened_after', 'opened_on', 'open_since', 'shown_from']) }}
    {{ days_between('spells.shown_from', at_the_end) }} as days_open_at_least,
    {{ days_between('spells.opened_after', at_the_end) }} as days_open_at_most,
    dates.day > listings.last_listed_on as is_carried_forward,
    dates.day >= first_days.all_listed_on as has_all_organisations
from {{ in_this_file(ref('public_jobs', 'public_jobs__job_spells')) }} as spells
inner join {{ in_this_file(ref('public_jobs', 'public_jobs__dates')) }} as dates
    on dates.day >= spells.from_day and dates.day < spells.until_day and dates.is_observed
inner join listings on spells.organisation = listings.organisation
cross join first_days
