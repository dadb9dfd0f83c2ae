-- Whole years, as tools want them that compute with dates.
with years as (
    select
        {{ first_day_of('year', local_time('min(periods.opened_by)')) }} as first_day,
        cast({{ dbt.dateadd('year', 1, first_day_of('year', local_time('max(listings.listed_at)'))) }} as date)
            as end_day
    from {{ ref('public_jobs', 'public_jobs__publication_periods') }} as periods
    inner join {{ ref('public_jobs', 'public_jobs__stg_listings') }} as listings using (organisation)
),

{% set last_day = 'cast(' ~ dbt.dateadd('day', -1, 'end_day') ~ ' as date)' -%}
days as (
    select {{ each_day('first_day', last_day) }} as day
    from years
    {{ each_day_rows('first_day', last_day) }}
)

select
    day,
    {{ first_day_of('week', 'day') }} as week,
    {{ first_day_of('month', 'day') }} as month,
    {{ first_day_of('quarter', 'day') }} as quarter,
    cast(extract(year from day) as bigint) as year
from days
