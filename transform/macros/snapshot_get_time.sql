{# The times of history are UTC, whatever the time zone of the session. #}
{% macro duckdb__snapshot_get_time() -%}
    cast(now() at time zone 'UTC' as timestamp)
{%- endmacro %}

{% macro postgres__snapshot_get_time() -%}
    cast(current_timestamp at time zone 'UTC' as timestamp)
{%- endmacro %}
