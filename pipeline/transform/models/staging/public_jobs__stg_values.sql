{{ config(
    materialized='incremental',
    unique_key='dbt_scd_id',
    incremental_strategy='merge' if target.type == 'bigquery' else 'delete+insert'
) }}
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' -%}
{%- set history = ref('public_jobs', 'public_jobs__stg_job_detail_history') -%}
{%- set recipe = local_md5(cleaned('history', 'job_details')) -%}

-- What is in the fields of each detail that have no column, and its questions. Texts are read once, by the
-- build that sees the version first, and no step holds them: each part reads the history anew. A row
-- without a field says that the version was read.
with named as (
    select history.dbt_scd_id, history.additional_fields, {{ json_names('history.additional_fields') }} as field
    from {{ unread(history, this, recipe) }}
    {{ json_names_rows('history.additional_fields') }}
    where history.additional_fields is not null
),

-- A single value is a list of one, and a field without a value keeps a row with its type.
lists as (
    select
        dbt_scd_id,
        field,
        type,
        case
            when type = 'array' and value <> '[]' then value
            when type in ('array', 'null') then '[null]'
            else '[' || value || ']'
        end as list
    from (
        select dbt_scd_id, field, {{ json_type('json') }} as type, {{ json_source('json') }} as value
        from (
            select dbt_scd_id, field, {{ json_value('additional_fields', 'field') }} as json
            from named
        ) as found
    ) as typed
),

elements as (
    select dbt_scd_id, field, type, value_number, {{ trimmed(json_as_text('item')) }} as value
    from (
        select
            dbt_scd_id, field, type,
            {{ json_positions('list') }} as value_number,
            {{ json_elements('list') }} as item
        from lists
        {{ json_elements_rows('list') }}
    ) as items
),

questions as (
    select dbt_scd_id, value_number,
        {{- question_columns('item') }}
    from (
        select
            history.dbt_scd_id,
            {{ json_positions('history.knockout_questions') }} as value_number,
            {{ json_elements('history.knockout_questions') }} as item
        from {{ unread(history, this, recipe) }}
        {{ json_elements_rows('history.knockout_questions') }}
        where history.knockout_questions is not null
    ) as items
),

found as (
    select
        dbt_scd_id, field, type, value_number, value,
        {{ no_text }} as question_id, {{ no_text }} as question_type, cast(null as boolean) as answer_required
    from elements
    union all
    select dbt_scd_id, 'knockout_questions', null, value_number, question, question_id, type, answer_required
    from questions
    where question is not null or question_id is not null
    union all
    select history.dbt_scd_id, null, null, null, null, null, null, null
    from {{ unread(history, this, recipe) }}
)

select
    dbt_scd_id,
    field,
    type,
    value_number,
    case when length(value) > {{ short() }} then left(value, {{ short() }}) else value end as value,
    coalesce(length(value) > {{ short() }}, false) as is_long,
    question_id,
    question_type,
    answer_required,
    '{{ recipe }}' as recipe
from found
