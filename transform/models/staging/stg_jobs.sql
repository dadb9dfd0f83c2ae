with raw as (
    {{ raw('jobs', ['id'] + summary_texts() + summary_numbers() + ['additional_fields']) }}
)

select
    raw.organisation,
    raw.job_key,
    raw.id,
    {%- for column in summary_texts() %}
    {{ text('raw.' ~ column) }} as {{ column }},
    {%- endfor %}
    {%- for column in summary_numbers() %}
    {{ number('raw.' ~ column) }} as {{ column }},
    {%- endfor %}
    {{ json_text('raw.additional_fields') }} as additional_fields,
    publications.listed_at
from raw
inner join {{ ref('stg_publications') }} as publications using (job_key)
where publications.is_published
