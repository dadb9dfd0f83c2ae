with raw as (
    {{ raw('jobs', ['id', 'additional_fields'] + fields()['jobs'] | list) }}
)

select
    raw.organisation,
    raw.job_key,
    raw.id,
    {%- for column, group in fields()['jobs'].items() %}
    {{ cleaned('raw.' ~ column, group) }} as {{ column }},
    {%- endfor %}
    {{ json_text('raw.additional_fields') }} as additional_fields,
    publications.listed_at
from raw
inner join {{ ref('stg_publications') }} as publications using (job_key)
where publications.is_published
