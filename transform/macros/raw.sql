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
        {{ columns | join(',\n        ') }}
    from {{ first.incorporate(path={'schema': schema}) }}
    {% if not loop.last %}union all{% endif %}
    {%- endfor %}
{% endmacro %}
