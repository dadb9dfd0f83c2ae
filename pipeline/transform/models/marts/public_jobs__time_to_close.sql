select
    organisation,
    dimension,
    value,
    max(at_risk) as at_risk,
    cast(sum(closed) as bigint) as closed,
    min(case when still_open <= 0.5 then days end) as median_days,
    max(days) as longest_days
from {{ ref('public_jobs', 'public_jobs__time_to_close_curve') }}
group by organisation, dimension, value
