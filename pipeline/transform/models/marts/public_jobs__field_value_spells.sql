{{ config(materialized='view') }}
-- Each value of each spell.
select
    spells.organisation,
    spells.spell_key || ' ' || found.field || ' ' || cast(found.value_number as {{ dbt.type_string() }}) as value_key,
    {{- of('spells', ['job_key', 'id', 'public_id', 'spell_key', 'version'] + short_columns()[:5]) }}
    {{- of('spells', ['from_at', 'until_at', 'from_day', 'until_day', 'is_now']) }}
    {{- of('found', ['field', 'value_number', 'value', 'is_long', 'question_id', 'question_type', 'answer_required']) }}
    spells.updated_at
from {{ in_this_file(ref('public_jobs', 'public_jobs__job_spells')) }} as spells
inner join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_job_versions')) }} as versions
    on spells.job_key = versions.job_key and spells.version = versions.version
inner join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_values')) }} as found
    on versions.detail_scd_id = found.dbt_scd_id and (found.value is not null or found.question_id is not null)
