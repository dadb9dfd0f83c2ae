{%- set key = 'job_key, changed_by' -%}

-- Both lists of each change.
with lists as (
    {%- for side in ('old', 'new') %}
    select {{ key }}, '{{ side }}' as side, {{ side }}_value as questions
    from {{ ref('public_jobs', 'public_jobs__job_changes') }}
    where field = 'knockout_questions' and {{ side }}_value is not null
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

items as (
    select {{ key }}, side, {{ json_elements('questions') }} as item
    from lists
    {{ json_elements_rows('questions') }}
),

-- Numbered by what they say, so that their order says nothing.
questions as (
    select
        *,
        row_number() over (
            partition by {{ key }}, side, question_id, question order by answer_required
        ) as nth_of_both
    from (
        select {{ key }}, side,
            {{- question_columns('item') }}
        from items
    ) as parsed
    where question is not null or question_id is not null
),

-- Of several with one id, those that say the same come first.
same as (
    select
        *,
        count(*) over (partition by {{ key }}, question_id, question, nth_of_both) = 2 as is_same
    from questions
),

of_id as (
    select
        *,
        row_number() over (
            partition by {{ key }}, side, question_id, is_same order by question, answer_required
        ) as nth_of_id
    from same
),

-- A question is the one with the same id and text, or else with the same id, or else with the same text.
named as (
    select
        *,
        case
            when question_id is not null and is_same
                then 'same' || chr(31) || question_id || chr(31) || coalesce(question, '')
            when
                question_id is not null
                and count(*) over (partition by {{ key }}, question_id, is_same, nth_of_id) = 2
                then 'id' || chr(31) || question_id
            when question is not null then 'text' || chr(31) || question
            else 'no text' || chr(31) || question_id
        end as name
    from of_id
),

numbered as (
    select
        *,
        row_number() over (
            partition by {{ key }}, side, name order by question, answer_required, question_id
        ) as nth
    from named
),

pairs as (
    select
        {{ key }},
        before.side is null as is_new,
        after.side is null as is_gone,
        before.side is not null and after.side is not null as is_kept,
        coalesce(after.question_id, before.question_id) as question_id,
        before.question as old_question,
        after.question as new_question,
        before.answer_required as old_required,
        after.answer_required as new_required
    from (select * from numbered where side = 'old') as before
    full outer join (select * from numbered where side = 'new') as after
        using ({{ key }}, name, nth)
),

named_changes as (
    select pairs.*, kinds.change
    from pairs
    cross join (
        {%- for change in ('added', 'removed', 'reworded', 'made required', 'made optional') %}
        select '{{ change }}' as change {{ 'union all' if not loop.last }}
        {%- endfor %}
    ) as kinds
    where
        case kinds.change
            when 'added' then is_new
            when 'removed' then is_gone
            when 'reworded' then is_kept and old_question is distinct from new_question
            when 'made required' then is_kept and new_required and not coalesce(old_required, false)
            when 'made optional' then is_kept and old_required and not coalesce(new_required, false)
        end
)

select
    changes.organisation,
    changes.job_key,
    changes.id,
    changes.public_id,
    changes.job_title,
    named_changes.change,
    named_changes.question_id,
    case when is_gone then old_question else new_question end as question,
    case when named_changes.change = 'reworded' then old_question end as old_question,
    case when is_gone then old_required else new_required end as answer_required,
    changes.changed_by,
    changes.recorded_at
from named_changes
inner join {{ ref('public_jobs', 'public_jobs__job_changes') }} as changes
    on
        named_changes.job_key = changes.job_key
        and named_changes.changed_by = changes.changed_by
        and changes.field = 'knockout_questions'
