-- What does each role ask that can rule an applicant out?
--
-- One row a question. answer_required is null where the API does not tell.
select
    coalesce(nullif(details.department, ''), 'not given') as department,
    details.job_title,
    details.public_id,
    questions.item ->> 'question' as question,
    questions.item ->> 'type' as type,
    (questions.item ->> 'required') = 'true' as answer_required
from public_jobs.job_details as details,
    unnest(details.knockout_questions::json[]) as questions(item)
where
    details.is_published
    and coalesce(questions.item ->> 'id', questions.item ->> 'question') is not null
order by 1, details.job_title nulls last, details.public_id, 4 nulls last, questions.item ->> 'id';
