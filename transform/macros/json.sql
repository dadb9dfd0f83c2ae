{#
JSON is text in all models, with the same operations on both databases.
The tap writes text. A column that the catalog declares as object or array is json on DuckDB, and
jsonb or jsonb[] on PostgreSQL, with a JSON null for a missing object.
#}
{% macro json_text(column) -%}
    {{ adapter.dispatch('json_text')(column) }}
{%- endmacro %}

{% macro duckdb__json_text(column) -%}
    nullif(cast({{ column }} as varchar), 'null')
{%- endmacro %}

{% macro postgres__json_text(column) -%}
    nullif(to_jsonb({{ column }}) #>> '{}', 'null')
{%- endmacro %}


{# One row for each element of an array, in a list of columns. #}
{% macro json_elements(text) -%}
    {{ adapter.dispatch('json_elements')(text) }}
{%- endmacro %}

{% macro duckdb__json_elements(text) -%}
    unnest(cast(cast({{ text }} as json) as json[]))
{%- endmacro %}

{% macro postgres__json_elements(text) -%}
    jsonb_array_elements(cast({{ text }} as jsonb))
{%- endmacro %}


{# The places of these elements, from 1; beside json_elements. #}
{% macro json_places(text) -%}
    {{ adapter.dispatch('json_places')(text) }}
{%- endmacro %}

{% macro duckdb__json_places(text) -%}
    unnest(range(1, cast(json_array_length({{ text }}) as bigint) + 1))
{%- endmacro %}

{% macro postgres__json_places(text) -%}
    generate_series(cast(1 as bigint), jsonb_array_length(cast({{ text }} as jsonb)))
{%- endmacro %}


{# One row for each name in either of two objects, in a list of columns. #}
{% macro json_names(text, other="'{}'") -%}
    {{ adapter.dispatch('json_names')(text, other) }}
{%- endmacro %}

{% macro duckdb__json_names(text, other) -%}
    unnest(list_distinct(list_concat(
        json_keys(coalesce({{ text }}, '{}')), json_keys(coalesce({{ other }}, '{}'))
    )))
{%- endmacro %}

{% macro postgres__json_names(text, other) -%}
    jsonb_object_keys(
        coalesce(cast({{ text }} as jsonb), '{}') || coalesce(cast({{ other }} as jsonb), '{}')
    )
{%- endmacro %}


{# The value under a name, as JSON; a JSON pointer finds names with quotes and dots. #}
{% macro json_value(text, name) -%}
    {{ adapter.dispatch('json_value')(text, name) }}
{%- endmacro %}

{% macro duckdb__json_value(text, name) -%}
    json_extract({{ text }}, '/' || replace(replace({{ name }}, '~', '~0'), '/', '~1'))
{%- endmacro %}

{% macro postgres__json_value(text, name) -%}
    cast({{ text }} as jsonb) -> {{ name }}
{%- endmacro %}


{# A JSON value as text: null as null, text without quotes, arrays and objects as JSON. #}
{% macro json_as_text(value) -%}
    {{ adapter.dispatch('json_as_text')(value) }}
{%- endmacro %}

{% macro duckdb__json_as_text(value) -%}
    ({{ value }}) ->> '$'
{%- endmacro %}

{% macro postgres__json_as_text(value) -%}
    ({{ value }}) #>> '{}'
{%- endmacro %}


{# The type of a JSON value, in the words of JSON. #}
{% macro json_type(value) -%}
    {{ adapter.dispatch('json_type')(value) }}
{%- endmacro %}

{% macro duckdb__json_type(value) -%}
    case coalesce(json_type({{ value }}), 'NULL')
        when 'VARCHAR' then 'string'
        when 'BOOLEAN' then 'boolean'
        when 'ARRAY' then 'array'
        when 'OBJECT' then 'object'
        when 'NULL' then 'null'
        else 'number'
    end
{%- endmacro %}

{% macro postgres__json_type(value) -%}
    jsonb_typeof({{ value }})
{%- endmacro %}


{# The text of a JSON object, with other columns put into it by name, and without some names. #}
{% macro json_with(column, others, ignored) -%}
    {{ adapter.dispatch('json_with')(column, others, ignored) }}
{%- endmacro %}

{% macro duckdb__json_with(column, others, ignored) -%}
    {# A null in a patch removes the name. #}
    {%- set patch = {} -%}
    {%- for name in ignored -%}
        {%- do patch.update({name: none}) -%}
    {%- endfor -%}
    nullif(cast(json_merge_patch(
        coalesce({{ json_text(column) }}, '{}')
        {%- for name, other in others.items() %},
        case when {{ other }} is null then '{}' else json_object('{{ name }}', {{ other }}) end
        {%- endfor %},
        '{{ tojson(patch) | replace("'", "''") }}'
    ) as varchar), '{}')
{%- endmacro %}

{% macro postgres__json_with(column, others, ignored) -%}
    nullif((
        coalesce(cast({{ json_text(column) }} as jsonb), '{}')
        {%- for name, other in others.items() %}
        || case
            when {{ other }} is null then '{}'
            else jsonb_build_object('{{ name }}', {{ other }})
        end
        {%- endfor %}
        )
        {%- for name in ignored %}
        - '{{ name | replace("'", "''") }}'
        {%- endfor %},
        '{}'
    ) #>> '{}'
{%- endmacro %}
