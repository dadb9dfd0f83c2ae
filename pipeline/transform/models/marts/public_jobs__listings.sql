with numbered as (
    select
        organisation,
        listed_at,
        lag(listed_at) over (partition by organisation order by listed_at) as previous_listed_at,
        max(listed_at) over (partition by organisation) as latest_listed_at
    from {{ ref('public_jobs', 'public_jobs__listing_history') }}
)

select
    organisation,
    listed_at,
    previous_listed_at,
    {{ days_between('previous_listed_at', 'listed_at') }} as days_since_previous,
    listed_at = latest_listed_at as is_latest
from numbered
