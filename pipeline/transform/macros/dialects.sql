{#
What databases write in different ways, besides JSON. DuckDB and PostgreSQL are the default. A macro
whose name ends with _rows belongs into the FROM clause of the query that has the other one.
#}
{% macro double() -%}
    {{ adapter.dispatch('double', 'public_jobs')() }}
{%- endmacro %}

{% macro default__double() -%}
    float8
{%- endmacro %}

{% macro bigquery__double() -%}
    float64
{%- endmacro %}


{#
A letter and its accent as one character (NFC). To compose takes twenty times as long as to look for
what may need it, and long texts have many letters. Snowflake has no function for it.
#}
{% macro composed(text) -%}
    {{ adapter.dispatch('composed', 'public_jobs')(text) }}
{%- endmacro %}

{% macro duckdb__composed(text) -%}
    case
        when regexp_matches({{ text }}, '[\x{300}-\x{1FFF}\x{3099}\x{309A}]') then nfc_normalize({{ text }})
        else {{ text }}
    end
{%- endmacro %}

{% macro postgres__composed(text) -%}
    case when {{ text }} ~ '[\u0300-\u1FFF\u3099\u309A]' then normalize({{ text }}, NFC) else {{ text }} end
{%- endmacro %}

{% macro snowflake__composed(text) -%}
    {{ text }}
{%- endmacro %}

{% macro bigquery__composed(text) -%}
    normalize({{ text }}, NFC)
{%- endmacro %}


{# The others decide by themselves which queries they run once. #}
{% macro materialized() -%}
    {{ 'materialized' if target.type in ('duckdb', 'postgres') }}
{%- endmacro %}


{# The greatest or least of some values, without nulls: Snowflake and BigQuery would return null. #}
{% macro of_known(function, values) -%}
    {{ function }}(
        {%- for first in range(values | length) %}
        coalesce({{ (values[first:] + values[:first]) | join(', ') }}){{ ',' if not loop.last }}
        {%- endfor %}
    )
{%- endmacro %}


{# One row for each day, in a list of columns. #}
{% macro each_day(first, last) -%}
    {{ adapter.dispatch('each_day', 'public_jobs')(first, last) }}
{%- endmacro %}

{% macro each_day_rows(first, last) -%}
    {{ adapter.dispatch('each_day_rows', 'public_jobs')(first, last) }}
{%- endmacro %}

{% macro default__each_day_rows(first, last) -%}{%- endmacro %}

{% macro duckdb__each_day(first, last) -%}
    cast(unnest(generate_series(
        cast({{ first }} as timestamp), cast({{ last }} as timestamp), interval '1 day'
    )) as date)
{%- endmacro %}

{% macro postgres__each_day(first, last) -%}
    cast(generate_series(
        cast({{ first }} as timestamp), cast({{ last }} as timestamp), interval '1 day'
    ) as date)
{%- endmacro %}

{% macro snowflake__each_day(first, last) -%}
    cast(dateadd('day', cast(each_day.value as int), {{ first }}) as date)
{%- endmacro %}

{% macro snowflake__each_day_rows(first, last) -%}
    , lateral flatten(
        input => array_generate_range(0, datediff('day', {{ first }}, {{ last }}) + 1)
    ) as each_day
{%- endmacro %}

{% macro bigquery__each_day(first, last) -%}
    each_day
{%- endmacro %}

{% macro bigquery__each_day_rows(first, last) -%}
    cross join unnest(generate_date_array({{ first }}, {{ last }})) as each_day
{%- endmacro %}


{# DuckDB names a database after its file, so views that name it would break in a copy. #}
{% macro in_this_file(relation) -%}
    {{ relation.include(database=target.type != 'duckdb' or relation.database != this.database) }}
{%- endmacro %}


{# A time of UTC on the clock of the variable time_zone, and the day that it then is there. #}
{% macro local_time(time) -%}
    {{ time if var('time_zone') == 'UTC' else adapter.dispatch('moved', 'public_jobs')(time, 'UTC', var('time_zone')) }}
{%- endmacro %}

{% macro local_day(time) -%}
    cast({{ local_time(time) }} as date)
{%- endmacro %}


{# The time of UTC at which a day begins there. #}
{% macro utc_of_local_day(day) -%}
    {%- set start = 'cast(' ~ day ~ ' as timestamp)' -%}
    {{ start if var('time_zone') == 'UTC' else adapter.dispatch('moved', 'public_jobs')(start, var('time_zone'), 'UTC') }}
{%- endmacro %}


{# The same moment on the clocks of two zones, as a timestamp without a zone. #}
{% macro default__moved(time, first, second) -%}
    (({{ time }}) at time zone '{{ first }}' at time zone '{{ second }}')
{%- endmacro %}

{% macro snowflake__moved(time, first, second) -%}
    convert_timezone('{{ first }}', '{{ second }}', {{ time }})
{%- endmacro %}

{# A timestamp of BigQuery is a moment: its clock is that of UTC. #}
{% macro bigquery__moved(time, first, second) -%}
    timestamp(datetime({{ time }}, '{{ second }}'), '{{ first }}')
{%- endmacro %}
