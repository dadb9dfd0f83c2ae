-- Only what a detail has beyond the summary: where both have a field, that of the list is newer.
with raw as (
    {{ raw('job_details', ['id', 'additional_fields'] + fields()['job_details'] | list) }}
)

select
    raw.organisation,
    raw.job_key,
    raw.id,
    {%- for column, group in fields()['job_details'].items() %}
    {{ cleaned('raw.' ~ column, group) }} as {{ column }},
    {%- endfor %}
    {{ json_text('raw.additional_fields') }} as additional_fields,
    publications.listed_at
from raw
inner join {{ ref('stg_publications') }} as publications using (job_key)
where publications.is_published
