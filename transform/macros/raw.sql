{# The schemas that the loader has filled, one for each organisation. #}
{% macro schemas() %}
    {%- set given = var('schemas', env_var('PUBLIC_JOBS_SCHEMAS', 'public_jobs')) -%}
    {{ return((given.split(',') if given is string else given) | map('trim') | list) }}
{% endmacro %}


{# Columns of one raw table, of all organisations that have it. #}
{% macro raw(table, columns) %}
    {%- set first = source('public_jobs', table) -%}
    {%- set loaded = [] -%}
    {%- for schema in schemas() -%}
        {%- if is_loaded(first.incorporate(path={'schema': schema}), schema) -%}
            {%- do loaded.append(schema) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for schema in loaded or schemas() %}
    select
        cast('{{ schema }}' as {{ dbt.type_string() }}) as organisation,
        cast('{{ schema }}' as {{ dbt.type_string() }}) || '/' || id as job_key,
        {{ columns | reject('equalto', 'additional_fields') | join(',\n        ') }}
        {%- if 'additional_fields' in columns %},
        {{ all_additional_fields(first.incorporate(path={'schema': schema})) }} as additional_fields
        {%- endif %}
    from {{ first.incorporate(path={'schema': schema}) }}
    {% if not loop.last %}union all{% endif %}
    {%- endfor %}
{% endmacro %}


{# The rows of one raw table whose jobs are published, as all models have them. #}
{% macro staged(table) -%}
with raw as (
    {{ raw(table, ['id', 'additional_fields'] + fields()[table] | list) }}
)

select
    raw.organisation,
    raw.job_key,
    raw.id,
    {%- for column, group in fields()[table].items() %}
    {{ cleaned('raw.' ~ column, group) }} as {{ column }},
    {%- endfor %}
    {{ json_text('raw.additional_fields') }} as additional_fields,
    publications.listed_at
from raw
inner join {{ ref('stg_publications') }} as publications using (job_key)
where publications.is_published
{%- endmacro %}


{# Whether a table is there. Without it, history would close all jobs of an organisation it knows. #}
{% macro is_loaded(table, organisation) %}
    {%- if not execute or load_relation(table) -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set history = load_relation(api.Relation.create(
        database=target.database,
        schema=target.schema ~ '_history',
        identifier='publication_history'
    )) -%}
    {%- set known = "select 1 from " ~ history ~ " where organisation = '" ~ organisation ~ "'" -%}
    {%- if history and run_query(known ~ ' limit 1').rows -%}
        {%- do exceptions.raise_compiler_error(
            'There is no table ' ~ table ~ ', but history has jobs of ' ~ organisation
            ~ ': load them first, or take ' ~ organisation ~ ' off PUBLIC_JOBS_SCHEMAS.'
        ) -%}
    {%- endif -%}
    {%- do exceptions.warn('There is no table ' ~ table ~ ' yet: ' ~ organisation ~ ' is left out.') -%}
    {{ return(false) }}
{% endmacro %}


{#
additional_fields, and in it each field that was given a column in Meltano's `schema` extra. So a
field has one history, whether or not it has a column.
#}
{% macro all_additional_fields(relation) %}
    {%- set known = ['id', 'additional_fields'] + (fields().values() | map('list') | sum(start=[])) -%}
    {%- set declared = {} -%}
    {%- for column in adapter.get_columns_in_relation(relation) if execute -%}
        {%- if column.name not in known and not column.name.startswith('_sdc_') -%}
            {%- set words = column.name.split('_') -%}
            {%- set field = words[0] ~ words[1:] | map('capitalize') | join -%}
            {%- do declared.update({field: adapter.quote(column.name)}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ json_with('additional_fields', declared) if declared else 'additional_fields' }}
{%- endmacro %}
