-- How often is each knockout question asked?
-- Questions are told apart by type and text. A role that asks one twice counts once.
select
    coalesce(questions.item ->> 'type', 'not given') as type,
    questions.item ->> 'question' as question,
    count(distinct details.id) as roles,
    count(distinct details.id) filter (
        where (questions.item ->> 'required') = 'true'
    ) as answer_required
from public_jobs.job_details as details,
    unnest(details.knockout_questions::json[]) as questions(item)
where details.is_published and (questions.item ->> 'question') is not null
group by 1, 2
order by roles desc, 1, 2;
