with questions as (
    select
        organisation,
        job_key,
        id,
        public_id,
        job_title,
        {{ json_places('knockout_questions') }} as question_number,
        {{ json_elements('knockout_questions') }} as item
    from {{ ref('open_jobs') }}
    where knockout_questions is not null
)

select
    organisation,
    job_key,
    id,
    public_id,
    job_title,
    question_number,
    {{ text("item ->> 'id'") }} as question_id,
    {{ text("item ->> 'question'") }} as question,
    {{ text("item ->> 'type'") }} as type,
    case item ->> 'required' when 'true' then true when 'false' then false end as answer_required
from questions
where {{ text("item ->> 'question'") }} is not null or {{ text("item ->> 'id'") }} is not null
