-- Which questions of each role can rule an applicant out?
-- One row a question. answer_required is null where the API does not tell.
select
    details.job_title,
    questions.item ->> 'question' as question,
    questions.item ->> 'type' as type,
    (questions.item ->> 'required') = 'true' as answer_required,
    details.public_id
from public_jobs.job_details as details,
    unnest(details.knockout_questions::json[]) as questions(item)
where details.is_published and (questions.item ->> 'question') is not null
order by details.job_title, details.public_id, 2, 4;
