-- The only place that says what is published now.
with raw as (
    {{ raw('job_publications', [
        'public_id', 'opened_after', 'first_seen_at', 'last_seen_at', 'unpublished_at'
    ]) }}
)

select
    organisation,
    job_key,
    id,
    cast(public_id as {{ dbt.type_string() }}) as public_id,
    cast(opened_after as timestamp) as opened_after,
    cast(first_seen_at as timestamp) as first_seen_at,
    cast(last_seen_at as timestamp) as last_seen_at,
    cast(unpublished_at as timestamp) as unpublished_at,
    -- The second condition covers a lost state: each complete run writes every published job.
    unpublished_at is null
    and last_seen_at = max(last_seen_at) over (partition by organisation) as is_published,
    cast(max(coalesce(unpublished_at, last_seen_at)) over (partition by organisation) as timestamp)
        as listed_at
from raw
