{#
The times of history are UTC, whatever the time zone of the session. dbt would take a macro
snapshot_get_time from the user's own project alone, and not from a package, so the snapshots'
hooks set the session instead. Other warehouses take UTC by themselves.
#}
{% macro begin_utc() -%}
    {{ adapter.dispatch('begin_utc', 'public_jobs')() }}
{%- endmacro %}

{% macro default__begin_utc() -%}{%- endmacro %}

{# For this transaction alone. #}
{% macro postgres__begin_utc() -%}
    set local time zone 'UTC'
{%- endmacro %}

{% macro duckdb__begin_utc() -%}
    {%- if execute -%}
        {%- set zone = run_query("select current_setting('TimeZone')")[0][0] -%}
        {%- do model.update({'time_zone_before': zone}) -%}
    {%- endif -%}
    set TimeZone = 'UTC'
{%- endmacro %}


{# DuckDB has no setting for one transaction, and the user's own models may come next. #}
{% macro end_utc() -%}
    {%- if model.time_zone_before -%}
    set TimeZone = '{{ model.time_zone_before }}'
    {%- endif -%}
{%- endmacro %}
