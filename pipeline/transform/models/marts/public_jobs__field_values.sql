{{ config(materialized='view') }}
select
    {{- of('spells', ['organisation', 'job_key', 'id', 'public_id'] + short_columns()[:5]) }}
    {{- of('spells', ['field', 'value_number', 'value', 'is_long', 'question_id', 'question_type']) }}
    spells.answer_required
from {{ in_this_file(ref('public_jobs', 'public_jobs__field_value_spells')) }} as spells
where spells.is_now
