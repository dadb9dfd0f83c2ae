{# BigQuery has no append; without a key, a merge is one. #}
{{ config(
    materialized='incremental' if copies_texts() else 'view',
    incremental_strategy='merge' if target.type == 'bigquery' else 'append',
    on_schema_change='append_new_columns'
) }}
{%- set columns = [
    'organisation', 'job_key', 'id', 'public_id', 'job_title', 'field', 'old_value', 'new_value',
    'old_number', 'new_number', 'old_currency', 'new_currency', 'changed_after', 'changed_by',
    'recorded_at', 'version',
] -%}

{# Not one query that all parts read, because DuckDB would then read every column for every reader. #}
{%- set found -%}
    {{ in_this_file(ref('public_jobs', 'public_jobs__stg_field_changes')) }} as changes
    {%- if is_incremental() %}
    left join (
        select organisation, max(changed_by) as changed_by from {{ this }} group by organisation
    ) as latest using (organisation)
    {%- endif %}
{%- endset -%}
{%- set is_new = 'and (latest.changed_by is null or changes.changed_by > latest.changed_by)' if is_incremental() else '' -%}

select
    {%- for column in columns %}
    changes.{{ column }},
    {%- endfor %}
    false as is_long
from {{ found }}
where not changes.is_long {{ is_new }}

-- Histories alone keep a value that is long. The database passes over all that nobody asks for: over the
-- histories, if a query wants no long values.
{%- for kind in ('summary', 'detail', 'undeclared') %}
{%- set history = 'public_jobs__stg_job_history' if kind == 'summary' else 'public_jobs__stg_job_detail_history' %}
union all
select
    {%- for column in columns %}
    {%- set version = {'old_value': 'before', 'new_value': 'after'}.get(column) %}
    {%- if not version %}
    changes.{{ column }}
    {%- elif kind == 'undeclared' %}
    {{ text(json_field(version ~ '.additional_fields', 'changes.name')) }} as {{ column }}
    {%- else %}
    {{ long_value_of(version, fields()['jobs' if kind == 'summary' else 'job_details']) }} as {{ column }}
    {%- endif %}
    {{- ',' }}
    {%- endfor %}
    true as is_long
from {{ found }}
inner join {{ in_this_file(ref('public_jobs', history)) }} as before
    on changes.old_scd_id = before.dbt_scd_id and changes.old_valid_from = before.dbt_valid_from
inner join {{ in_this_file(ref('public_jobs', history)) }} as after
    on changes.dbt_scd_id = after.dbt_scd_id and changes.dbt_valid_from = after.dbt_valid_from
where changes.is_long and changes.kind = '{{ kind }}' {{ is_new }}
{%- endfor %}
