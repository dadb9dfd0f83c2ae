{#
JSON is text in all models, with the same operations on all databases.
The tap writes text. A column that the catalog declares as object or array is json on DuckDB,
jsonb or jsonb[] on PostgreSQL, and variant on Snowflake, with a JSON null for a missing object.
A macro whose name ends with _rows belongs into the FROM clause of the query that has the other one.
#}
{% macro json_text(column) -%}
    {{ adapter.dispatch('json_text', 'public_jobs')(column) }}
{%- endmacro %}

{% macro default__json_text(column) -%}
    nullif(cast({{ column }} as {{ dbt.type_string() }}), 'null')
{%- endmacro %}

{% macro postgres__json_text(column) -%}
    nullif(to_jsonb({{ column }}) #>> '{}', 'null')
{%- endmacro %}


{# One row for each element of an array, in a list of columns. #}
{% macro json_elements(text) -%}
    {{ adapter.dispatch('json_elements', 'public_jobs')(text) }}
{%- endmacro %}

{% macro duckdb__json_elements(text) -%}
    unnest(cast(cast({{ text }} as json) as json[]))
{%- endmacro %}

{% macro postgres__json_elements(text) -%}
    jsonb_array_elements(cast({{ text }} as jsonb))
{%- endmacro %}

{% macro snowflake__json_elements(text) -%}
    to_json(elements.value)
{%- endmacro %}

{% macro bigquery__json_elements(text) -%}
    element
{%- endmacro %}

{% macro json_elements_rows(text) -%}
    {{ adapter.dispatch('json_elements_rows', 'public_jobs')(text) }}
{%- endmacro %}

{% macro default__json_elements_rows(text) -%}{%- endmacro %}

{% macro snowflake__json_elements_rows(text) -%}
    , lateral flatten(input => parse_json({{ text }})) as elements
{%- endmacro %}

{% macro bigquery__json_elements_rows(text) -%}
    cross join unnest(json_query_array({{ text }})) as element with offset as position
{%- endmacro %}


{# The positions of these elements, from 1; beside json_elements. #}
{% macro json_positions(text) -%}
    {{ adapter.dispatch('json_positions', 'public_jobs')(text) }}
{%- endmacro %}

{% macro duckdb__json_positions(text) -%}
    unnest(range(1, cast(json_array_length({{ text }}) as bigint) + 1))
{%- endmacro %}

{% macro postgres__json_positions(text) -%}
    generate_series(cast(1 as bigint), jsonb_array_length(cast({{ text }} as jsonb)))
{%- endmacro %}

{% macro snowflake__json_positions(text) -%}
    elements.index + 1
{%- endmacro %}

{% macro bigquery__json_positions(text) -%}
    position + 1
{%- endmacro %}


{# One row for each name in an object, in a list of columns. #}
{% macro json_names(text) -%}
    {{ adapter.dispatch('json_names', 'public_jobs')(text) }}
{%- endmacro %}

{% macro duckdb__json_names(text) -%}
    unnest(json_keys({{ text }}))
{%- endmacro %}

{% macro postgres__json_names(text) -%}
    jsonb_object_keys(cast({{ text }} as jsonb))
{%- endmacro %}

{% macro snowflake__json_names(text) -%}
    cast(names.value as varchar)
{%- endmacro %}

{% macro bigquery__json_names(text) -%}
    name
{%- endmacro %}

{% macro json_names_rows(text) -%}
    {{ adapter.dispatch('json_names_rows', 'public_jobs')(text) }}
{%- endmacro %}

{% macro default__json_names_rows(text) -%}{%- endmacro %}

{% macro snowflake__json_names_rows(text) -%}
    , lateral flatten(input => object_keys(parse_json({{ text }}))) as names
{%- endmacro %}

{# Those of the first level. A name with odd characters comes in quotation marks, as JSON. #}
{% macro bigquery__json_names_rows(text) -%}
    cross join unnest(array(
        select if(starts_with(found, '"'), json_value(found), found)
        from unnest(json_keys(parse_json({{ text }}, wide_number_mode => 'round'), 1)) as found
    )) as name
{%- endmacro %}


{# The value under a name, as JSON; a JSON pointer finds names with quotes and dots. #}
{% macro json_value(text, name) -%}
    {{ adapter.dispatch('json_value', 'public_jobs')(text, name) }}
{%- endmacro %}

{% macro duckdb__json_value(text, name) -%}
    json_extract({{ text }}, {{ json_pointer(name) }})
{%- endmacro %}

{% macro json_pointer(name) -%}
    '/' || replace(replace({{ name }}, '~', '~0'), '/', '~1')
{%- endmacro %}

{# Not jsonb, which writes lists and numbers anew, with blanks. #}
{% macro postgres__json_value(text, name) -%}
    cast({{ text }} as json) -> {{ name }}
{%- endmacro %}

{% macro snowflake__json_value(text, name) -%}
    get(parse_json({{ text }}), {{ name }})
{%- endmacro %}

{% macro bigquery__json_value(text, name) -%}
    parse_json({{ text }}, wide_number_mode => 'round')[{{ name }}]
{%- endmacro %}


{# A JSON value as JSON. #}
{% macro json_source(value) -%}
    {{ adapter.dispatch('json_source', 'public_jobs')(value) }}
{%- endmacro %}

{% macro default__json_source(value) -%}
    cast({{ value }} as {{ dbt.type_string() }})
{%- endmacro %}

{% macro snowflake__json_source(value) -%}
    to_json({{ value }})
{%- endmacro %}

{% macro bigquery__json_source(value) -%}
    to_json_string({{ value }})
{%- endmacro %}


{# A JSON value as text: null as null, text without quotes, arrays and objects as JSON. #}
{% macro json_as_text(value) -%}
    {{ adapter.dispatch('json_as_text', 'public_jobs')(value) }}
{%- endmacro %}

{% macro duckdb__json_as_text(value) -%}
    ({{ value }}) ->> '$'
{%- endmacro %}

{% macro postgres__json_as_text(value) -%}
    ({{ value }}) #>> '{}'
{%- endmacro %}

{% macro snowflake__json_as_text(value) -%}
    to_varchar({{ value }})
{%- endmacro %}

{% macro bigquery__json_as_text(value) -%}
    coalesce(json_value({{ value }}), nullif(to_json_string({{ value }}), 'null'))
{%- endmacro %}


{# The value under a name, as text: on DuckDB in one step, because each takes several times its length. #}
{% macro json_field(text, name) -%}
    {{ adapter.dispatch('json_field', 'public_jobs')(text, name) }}
{%- endmacro %}

{% macro default__json_field(text, name) -%}
    {{ json_as_text(json_value(text, name)) }}
{%- endmacro %}

{% macro duckdb__json_field(text, name) -%}
    json_extract_string({{ text }}, {{ json_pointer(name) }})
{%- endmacro %}


{# The type of a JSON value, in the words of JSON. #}
{% macro json_type(value) -%}
    {{ adapter.dispatch('json_type', 'public_jobs')(value) }}
{%- endmacro %}

{% macro duckdb__json_type(value) -%}
    {{ type_in_words_of_json('json_type(' ~ value ~ ')', 'NULL') }}
{%- endmacro %}

{% macro postgres__json_type(value) -%}
    json_typeof({{ value }})
{%- endmacro %}

{% macro snowflake__json_type(value) -%}
    {{ type_in_words_of_json('typeof(' ~ value ~ ')', 'NULL_VALUE') }}
{%- endmacro %}

{# `absent` is the database's name for null; its numbers have several names. #}
{% macro type_in_words_of_json(type, absent) -%}
    case coalesce({{ type }}, '{{ absent }}')
        when 'VARCHAR' then 'string'
        when 'BOOLEAN' then 'boolean'
        when 'ARRAY' then 'array'
        when 'OBJECT' then 'object'
        when '{{ absent }}' then 'null'
        else 'number'
    end
{%- endmacro %}

{% macro bigquery__json_type(value) -%}
    json_type({{ value }})
{%- endmacro %}


{# The text of a JSON object, with other columns put into it by name, and without some names. #}
{% macro json_with(column, others, ignored) -%}
    {{ adapter.dispatch('json_with', 'public_jobs')(column, others, ignored) }}
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

{% macro snowflake__json_with(column, others, ignored) -%}
    {# An SQL null is not inserted. #}
    nullif(to_json(
        {{ 'object_delete(' if ignored }}
        {%- for name in others %}object_insert({% endfor -%}
        cast(parse_json(coalesce({{ json_text(column) }}, '{}')) as object)
        {%- for name, other in others.items() %}, '{{ name }}', {{ other }}){% endfor -%}
        {%- for name in ignored %}, '{{ name | replace("'", "''") }}'{% endfor -%}
        {{ ')' if ignored }}
    ), '{}')
{%- endmacro %}

{% macro bigquery__json_with(column, others, ignored) -%}
    nullif(to_json_string(
        {{ 'json_remove(' if ignored }}
        {%- if others %}json_set({% endif -%}
        parse_json(coalesce({{ json_text(column) }}, '{}'), wide_number_mode => 'round')
        {%- for name, other in others.items() %}, '$."{{ name }}"', {{ other }}{% endfor -%}
        {{ ')' if others }}
        {%- for name in ignored %}, '$."{{ name | replace("'", "\\'") }}"'{% endfor -%}
        {{ ')' if ignored }}
    ), '{}')
{%- endmacro %}


{# The text of a JSON object in a form that depends on no order of names, and on no space. #}
{% macro json_comparable(text) -%}
    {{ adapter.dispatch('json_comparable', 'public_jobs')(text) }}
{%- endmacro %}

{% macro duckdb__json_comparable(text) -%}
    cast([name || {{ json_value(text, 'name') }} for name in list_sort(json_keys({{ text }}))] as varchar)
{%- endmacro %}

{% macro postgres__json_comparable(text) -%}
    cast(cast({{ text }} as jsonb) as text)
{%- endmacro %}

{% macro snowflake__json_comparable(text) -%}
    to_json(parse_json({{ text }}))
{%- endmacro %}

{% macro bigquery__json_comparable(text) -%}
    to_json_string(parse_json({{ text }}, wide_number_mode => 'round'))
{%- endmacro %}
