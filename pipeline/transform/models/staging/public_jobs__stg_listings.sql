-- Recorded last: what another build records later has come without a listing of its own.
-- depends_on: {{ ref('public_jobs', 'public_jobs__publication_history') }}
-- depends_on: {{ ref('public_jobs', 'public_jobs__job_history') }}
-- depends_on: {{ ref('public_jobs', 'public_jobs__job_detail_history') }}
select
    organisation,
    organisation || ' ' || cast(listed_at as {{ dbt.type_string() }}) as listing_key,
    listed_at
from {{ ref('public_jobs', 'public_jobs__stg_publications') }}
group by organisation, listed_at
