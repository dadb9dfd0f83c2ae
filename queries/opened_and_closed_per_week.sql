-- How many roles opened and closed in each week?
-- A week is named by its Monday, in UTC. A role counts in the week of the listing that first showed
-- it, or first did not show it any more; it may have opened or closed after the listing before.
-- The week is unknown for the opening of roles that the first listing already showed, and for the
-- closing of roles that are gone without a listing on record (the tap's state was lost).
-- Weeks without either have no row. A role that was published again counts from then on.
with published as (
    select id
    from public_jobs.job_publications
    where
        unpublished_at is null
        and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
),

events as (
    select
        case when opened_after is not null then date_trunc('week', first_seen_at) end as week,
        1 as opened,
        0 as closed
    from public_jobs.job_publications
    union all
    select date_trunc('week', publications.unpublished_at) as week, 0 as opened, 1 as closed
    from public_jobs.job_publications as publications
    left join published using (id)
    where published.id is null
)

select
    coalesce(cast(cast(week as date) as varchar), 'unknown') as week,
    sum(opened) as opened,
    sum(closed) as closed
from events
group by 1
order by 1;
