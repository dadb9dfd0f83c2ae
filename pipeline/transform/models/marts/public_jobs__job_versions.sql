{{ config(materialized='view') }}
{%- set texts = ['role_overview', 'knockout_questions', 'additional_fields'] -%}
-- What each version says, with its long texts.
select
    versions.organisation,
    versions.job_key || ' ' || cast(versions.version as {{ dbt.type_string() }}) as version_key,
    {{- of('versions', ['job_key', 'id', 'public_id', 'version', 'in_force_from', 'in_force_until']) }}
    {{- of('versions', short_columns() + pay_columns() + ['job_url', 'apply_url'] + extra_names()) }}
    {{- of('details', texts) }}
    {{- of('versions', ['detail_recorded_at', 'recorded_at']) }}
    versions.updated_at
from {{ in_this_file(ref('public_jobs', 'public_jobs__stg_job_versions')) }} as versions
left join {{ in_this_file(ref('public_jobs', 'public_jobs__stg_job_detail_history')) }} as details
    on versions.detail_scd_id = details.dbt_scd_id and versions.detail_valid_from = details.dbt_valid_from
