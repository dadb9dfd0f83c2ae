with questions as (
    select
        organisation,
        job_key,
        id,
        public_id,
        job_title,
        department,
        seniority_level,
        {{ json_positions('knockout_questions') }} as question_number,
        {{ json_elements('knockout_questions') }} as item
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
    {{ json_elements_rows('knockout_questions') }}
    where knockout_questions is not null
),

answers as (
    select
        organisation,
        job_key,
        id,
        public_id,
        job_title,
        department,
        seniority_level,
        question_number,
        {{- question_columns('item') }}
    from questions
)

select
    organisation,
    job_key,
    id,
    public_id,
    job_title,
    department,
    seniority_level,
    question_number,
    question_id,
    question,
    type,
    answer_required
from answers
where question is not null or question_id is not null
