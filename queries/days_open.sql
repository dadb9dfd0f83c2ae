-- How long are roles open, and how long were the closed ones?
-- A role opened between opened_after and opened_by, and closed between closed_after and closed_by:
-- each is the time of a listing. at_least_days and at_most_days are the bounds that follow, for an
-- open role until the last listing.
-- opened_after and at_most_days are null if the first listing already showed the role: its opening
-- is unknown. A role that was published again counts from then on.
-- An average over the closed roles alone is too low, because those that take long are still open.
-- The table time_to_close of the dbt project counts the open ones too.
-- job_title and department are null if the API gives none, or the target has removed the row.
with listings as (
    -- No table lists them: these are the ones that opened a role, closed one, or were the last to
    -- show one, and the ones before an opening.
    select listed_at, lead(listed_at) over (order by listed_at) as next_listed_at
    from (
        select opened_after as listed_at from public_jobs.job_publications
        union all select first_seen_at from public_jobs.job_publications
        union all select last_seen_at from public_jobs.job_publications
        union all select unpublished_at from public_jobs.job_publications
    ) as times
    where listed_at is not null
    group by listed_at
),

-- After a lost state the tap closes nothing that it has forgotten, so unpublished_at is null: the
-- role had closed by the listing after the one that last showed it.
roles as (
    select
        *,
        unpublished_at is null
            and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
            as is_open,
        coalesce(unpublished_at, next_listed_at) as closed_by
    from public_jobs.job_publications
    left join listings on last_seen_at = listed_at
)

select
    jobs.job_title,
    nullif(jobs.department, '') as department,
    case when is_open then 'open' else 'closed' end as status,
    opened_after,
    first_seen_at as opened_by,
    case when not is_open then last_seen_at end as closed_after,
    case when not is_open then closed_by end as closed_by,
    round(
        (extract(epoch from last_seen_at) - extract(epoch from first_seen_at)) / 86400, 1
    ) as at_least_days,
    round(
        (
            extract(epoch from case when is_open then last_seen_at else closed_by end)
            - extract(epoch from opened_after)
        ) / 86400, 1
    ) as at_most_days,
    roles.public_id
from roles
left join public_jobs.jobs using (id)
order by status desc, at_least_days desc, roles.public_id;
