{#
JSON is text in all models, with the same operations on both databases.
DuckDB's target writes a column of type json. That of PostgreSQL writes jsonb, and jsonb[] for an
array of objects, and a missing object as a JSON null.
#}
{% macro json_text(column) -%}
    {{ adapter.dispatch('json_text')(column) }}
{%- endmacro %}

{% macro duckdb__json_text(column) -%}
    nullif(cast({{ column }} as varchar), 'null')
{%- endmacro %}

{% macro postgres__json_text(column) -%}
    cast(nullif(to_jsonb({{ column }}), 'null') as text)
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


{# One row for each name in an object, in a list of columns. #}
{% macro json_names(text) -%}
    {{ adapter.dispatch('json_names')(text) }}
{%- endmacro %}

{% macro duckdb__json_names(text) -%}
    unnest(json_keys({{ text }}))
{%- endmacro %}

{% macro postgres__json_names(text) -%}
    jsonb_object_keys(cast({{ text }} as jsonb))
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


{# A JSON object, with other columns put into it by name; those that are null are left out. #}
{% macro json_with(column, others) -%}
    {{ adapter.dispatch('json_with')(column, others) }}
{%- endmacro %}

{% macro duckdb__json_with(column, others) -%}
    nullif(json_merge_patch(
        coalesce(nullif(cast({{ column }} as varchar), 'null'), '{}')
        {%- for name, other in others.items() %},
        case when {{ other }} is null then '{}' else json_object('{{ name }}', {{ other }}) end
        {%- endfor %}
    ), '{}')
{%- endmacro %}

{% macro postgres__json_with(column, others) -%}
    nullif(
        coalesce(nullif(to_jsonb({{ column }}), 'null'), '{}')
        {%- for name, other in others.items() %}
        || case
            when {{ other }} is null then '{}'
            else jsonb_build_object('{{ name }}', {{ other }})
        end
        {%- endfor %}, '{}'
    )
{%- endmacro %}
