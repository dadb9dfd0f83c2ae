-- How long do roles stay open, by department?
-- The medians count roles whose opening is known, and are null if there is none. A role is open for
-- at least and at most as many days as in days_open.sql; open roles count until the last listing.
-- Roles are "not in jobs" if the target has removed their row.
with published as (
    select id
    from public_jobs.job_publications
    where
        unpublished_at is null
        and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
),

latest as (
    select max(coalesce(unpublished_at, last_seen_at)) as listed_at
    from public_jobs.job_publications
),

roles as (
    select
        publications.*,
        published.id is not null as is_open,
        case
            when published.id is null then coalesce(publications.unpublished_at, latest.listed_at)
        end as closed_by
    from public_jobs.job_publications as publications
    left join published using (id)
    cross join latest
),

bounds as (
    select
        case
            when jobs.id is null then 'not in jobs'
            else coalesce(nullif(jobs.department, ''), 'not given')
        end as department,
        case when roles.is_open then 'open' else 'closed' end as status,
        roles.opened_after is null as is_opening_unknown,
        case
            when roles.opened_after is not null
                then round(
                    extract(epoch from (roles.last_seen_at - roles.first_seen_at)) / 86400, 1
                )
        end as at_least,
        round(
            extract(epoch from (coalesce(roles.closed_by, roles.last_seen_at) - roles.opened_after))
            / 86400, 1
        ) as at_most
    from roles
    left join public_jobs.jobs using (id)
)

select
    department,
    status,
    count(*) as roles,
    count(*) filter (where is_opening_unknown) as opening_unknown,
    percentile_cont(0.5) within group (order by at_least) as median_at_least_days,
    percentile_cont(0.5) within group (order by at_most) as median_at_most_days
from bounds
group by department, status
order by department, status desc;
