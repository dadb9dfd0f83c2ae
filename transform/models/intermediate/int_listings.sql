select
    organisation,
    listed_at,
    lag(listed_at) over (partition by organisation order by listed_at) as previous_listed_at
from {{ ref('listing_history') }}
