-- Only what a detail has beyond the summary: where both have a field, that of the list is newer.
with raw as (
    {{ raw('job_details', ['id'] + detail_texts() + detail_numbers()
        + ['knockout_questions', 'additional_fields']) }}
)

select
    raw.organisation,
    raw.job_key,
    raw.id,
    {%- for column in detail_texts() %}
    {{ text('raw.' ~ column) }} as {{ column }},
    {%- endfor %}
    {%- for column in detail_numbers() %}
    {{ number('raw.' ~ column) }} as {{ column }},
    {%- endfor %}
    {{ json_text('raw.knockout_questions') }} as knockout_questions,
    {{ json_text('raw.additional_fields') }} as additional_fields,
    publications.listed_at
from raw
inner join {{ ref('stg_publications') }} as publications using (job_key)
where publications.is_published
