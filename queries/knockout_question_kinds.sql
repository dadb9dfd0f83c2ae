-- How often is each knockout question asked, by type?
--
-- Questions are told apart by their text. roles counts each role once, also if it asks twice.
select
    coalesce(questions.item ->> 'type', 'not given') as type,
    coalesce(questions.item ->> 'question', 'not given') as question,
    count(distinct details.id) as roles,
    count(distinct details.id) filter (
        where (questions.item ->> 'required') = 'true'
    ) as roles_that_require_an_answer
from public_jobs.job_details as details,
    unnest(details.knockout_questions::json[]) as questions(item)
where
    details.is_published
    and coalesce(questions.item ->> 'id', questions.item ->> 'question') is not null
group by 1, 2
order by roles desc, 1, 2;
