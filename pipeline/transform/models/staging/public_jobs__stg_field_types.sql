{# BigQuery has no append; without a key, a merge is one. #}
{{ config(
    materialized='incremental',
    incremental_strategy='merge' if target.type == 'bigquery' else 'append'
) }}
{%- set histories = ['public_jobs__job_history', 'public_jobs__job_detail_history'] -%}

with
{%- if is_incremental() %}
latest as (
    select coalesce(max(recorded_at), {{ beginning_of_time() }}) as recorded_at
    from {{ this }}
),
{% endif %}
versions as (
    {%- for history in histories %}
    select organisation, additional_fields, listed_at, cast(dbt_valid_from as timestamp) as recorded_at
    from {{ ref('public_jobs', history) }}
    where
        additional_fields is not null
        {{ 'and cast(dbt_valid_from as timestamp) > (select recorded_at from latest)' if is_incremental() }}
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

named as (
    select versions.*, {{ json_names('additional_fields') }} as field
    from versions
    {{ json_names_rows('additional_fields') }}
),

valued as (
    select *, {{ json_value('additional_fields', 'field') }} as value
    from named
),

typed as (
    select organisation, field, {{ json_type('value') }} as type, listed_at, recorded_at
    from valued
)

select
    organisation,
    field,
    type,
    min(listed_at) as first_seen_at,
    max(recorded_at) as recorded_at
from typed
group by organisation, field, type
