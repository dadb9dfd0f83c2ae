-- How often is each knockout question asked?
-- Questions with the same type and text are one. A role that asks one twice counts once.
with published as (
    select id
    from public_jobs.job_publications
    where
        unpublished_at is null
        and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
)

select
    coalesce(questions.item ->> 'type', 'not given') as type,
    questions.item ->> 'question' as question,
    count(distinct details.id) as roles,
    count(distinct details.id) filter (
        where (questions.item ->> 'required') = 'true'
    ) as answer_required
from public_jobs.job_details as details
inner join published using (id)
cross join unnest(details.knockout_questions::json[]) as questions(item)
where (questions.item ->> 'question') is not null
group by 1, 2
order by roles desc, 1, 2;
