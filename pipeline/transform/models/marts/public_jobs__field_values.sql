{%- set of_the_job = 'organisation, job_key, id, public_id, job_title, department, seniority_level' -%}

with named as (
    select
        {{ of_the_job }},
        additional_fields,
        {{ json_names('additional_fields') }} as field
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
    {{ json_names_rows('additional_fields') }}
    where additional_fields is not null
),

valued as (
    select *, {{ json_value('additional_fields', 'field') }} as json
    from named
),

texts as (
    select
        {{ of_the_job }},
        field,
        {{ json_type('json') }} = 'array' as is_array,
        {{ json_as_text('json') }} as value
    from valued
),

lists as (
    select
        {{ of_the_job }},
        field,
        case when is_array then value else '[]' end as list
    from texts
),

elements as (
    select
        {{ of_the_job }},
        field,
        {{ json_positions('list') }} as value_number,
        {{ json_elements('list') }} as item
    from lists
    {{ json_elements_rows('list') }}
),

single_values as (
    select
        {{ of_the_job }},
        field,
        cast(1 as bigint) as value_number,
        {{ text('value') }} as value
    from texts
    where not is_array
    union all
    select
        {{ of_the_job }},
        field,
        value_number,
        {{ text(json_as_text('item')) }}
    from elements
)

select
    {{ of_the_job }},
    field,
    value_number,
    value
from single_values
where value is not null
