{# The schemas that the loader has filled, one for each organisation. #}
{% macro schemas() %}
    {%- set given = var('schemas', env_var('PUBLIC_JOBS_SCHEMAS', 'public_jobs')) -%}
    {{ return((given.split(',') if given is string else given) | map('trim') | list) }}
{% endmacro %}


{# Columns of one raw table, of all organisations. #}
{% macro raw(table, columns) %}
    {%- set first = source('public_jobs', table) -%}
    {%- for schema in schemas() %}
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


{#
additional_fields, and in it each field that was given a column in Meltano's `schema` extra. So a
field has one history, whether or not it has a column.
#}
{% macro all_additional_fields(relation) %}
    {%- set known = ['id', 'knockout_questions', 'additional_fields'] + summary_texts()
        + summary_numbers() + detail_texts() + detail_numbers() -%}
    {%- set fields = {} -%}
    {%- for column in adapter.get_columns_in_relation(relation) if execute -%}
        {%- if column.name not in known and not column.name.startswith('_sdc_') -%}
            {%- set words = column.name.split('_') -%}
            {%- set field = words[0] ~ words[1:] | map('capitalize') | join -%}
            {%- do fields.update({field: adapter.quote(column.name)}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ json_with('additional_fields', fields) if fields else 'additional_fields' }}
{%- endmacro %}
