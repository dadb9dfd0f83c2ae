-- Whole years, as tools want them that compute with dates.
with known as (
    select
        min(periods.shown_from) as first_listed_at,
        max(listings.listed_at) as last_listed_at
    from {{ ref('public_jobs', 'public_jobs__stg_periods') }} as periods
    inner join {{ ref('public_jobs', 'public_jobs__stg_listings') }} as listings using (organisation)
),

-- Of several organisations, a week is whole once all are listed.
joined as (
    select max({{ local_day('first_listed_at') }}) as first_listed_on
    from (
        select organisation, min(shown_from) as first_listed_at
        from {{ ref('public_jobs', 'public_jobs__stg_periods') }}
        group by organisation
    ) as of_each
),

years as (
    select
        {{ first_day_of('year', local_time('first_listed_at')) }} as first_day,
        cast({{ dbt.dateadd('year', 1, first_day_of('year', local_time('last_listed_at'))) }} as date) as end_day,
        {{ local_day('first_listed_at') }} as first_seen_on,
        {{ local_day('last_listed_at') }} as last_day,
        joined.first_listed_on
    from known
    cross join joined
),

{% set last_day = 'cast(' ~ dbt.dateadd('day', -1, 'end_day') ~ ' as date)' -%}
days as (
    select first_seen_on, last_day, first_listed_on, {{ each_day('first_day', last_day) }} as day
    from years
    {{ each_day_rows('first_day', last_day) }}
),

parts as (
    select
        *,
        {{ first_day_of('week', 'day') }} as week,
        {{ first_day_of('month', 'day') }} as month,
        {{ first_day_of('quarter', 'day') }} as quarter
    from days
),

ends as (
    select
        *,
        cast({{ dbt.dateadd('day', 7, 'week') }} as date) as next_week,
        cast({{ dbt.dateadd('month', 1, 'month') }} as date) as next_month,
        cast({{ dbt.dateadd('day', 1, 'day') }} as date) as next_day
    from parts
)

select
    day,
    week,
    month,
    quarter,
    cast(extract(year from day) as bigint) as year,
    day between first_seen_on and last_day as is_observed,
    day = last_day as is_latest_day,
    day = last_day or (next_day = next_week and day < last_day) as is_last_day_of_week,
    day = last_day or (next_day = next_month and day < last_day) as is_last_day_of_month,
    week > first_listed_on and next_week <= last_day as is_whole_week,
    month > first_listed_on and next_month <= last_day as is_whole_month,
    {{ utc_of_local_day('next_day') }} as end_at
from ends
