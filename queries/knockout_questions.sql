-- Which questions of each role can rule an applicant out?
-- One row per question. answer_required is null where the API does not say.
select
    details.job_title,
    questions.item ->> 'question' as question,
    questions.item ->> 'type' as type,
    (questions.item ->> 'required') = 'true' as answer_required,
    details.public_id
from public_jobs.job_details as details
join public_jobs.job_publications using (id)
cross join unnest(details.knockout_questions::json[]) as questions(item)
where unpublished_at is null
  and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
  and (questions.item ->> 'question') is not null
order by details.job_title, details.public_id, 2, 4;
