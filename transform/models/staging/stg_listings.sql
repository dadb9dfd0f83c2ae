select
    organisation,
    organisation || ' ' || cast(listed_at as {{ dbt.type_string() }}) as listing_key,
    listed_at
from {{ ref('stg_publications') }}
group by organisation, listed_at
