-- Which questions of each role can rule an applicant out?
-- One row per question. answer_required is null where the API does not say.
with questions as (
    select
        details.id,
        details.public_id,
        details.job_title,
        details.knockout_questions::json -> positions.number as item
    from public_jobs.job_details as details
    cross join generate_series(
        0, json_array_length(details.knockout_questions::json)::int - 1
    ) as positions(number)
)

select
    questions.job_title,
    questions.item ->> 'question' as question,
    questions.item ->> 'type' as type,
    (questions.item ->> 'required') = 'true' as answer_required,
    questions.public_id
from questions
join public_jobs.job_publications using (id)
where unpublished_at is null
  and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
  and (questions.item ->> 'question') is not null
order by questions.job_title, questions.public_id, 2, 4;
