{#
How long a build waits for a table that somebody reads. It makes each table anew, which takes the
place of the old one once no transaction reads that; others that want to read it wait behind it.
#}
{% macro limit_waiting() -%}
    {{ "set lock_timeout = '" ~ var('lock_timeout') ~ "'" if target.type == 'postgres' }}
{%- endmacro %}


{#
PostgreSQL takes the rows of a computed column for few, and then compares each row of one table with
each of another. A build joins whole tables: one such join took ten minutes, and takes two seconds
without.
#}
{% macro avoid_nested_loops() -%}
    {{ 'set local enable_nestloop = off' if target.type == 'postgres' }}
{%- endmacro %}


{#
The times of history are UTC, whatever the time zone of the session. dbt would take a macro
snapshot_get_time from the user's own project alone, and not from a package, so a hook of the
snapshots sets the session instead.
#}
{% macro begin_utc() -%}
    {{ adapter.dispatch('begin_utc', 'public_jobs')() }}
{%- endmacro %}

{# Other warehouses take UTC by themselves. #}
{% macro default__begin_utc() -%}{%- endmacro %}

{# For this transaction alone. #}
{% macro postgres__begin_utc() -%}
    set local time zone 'UTC'
{%- endmacro %}

{# dbt 1 opens a session for each node. dbt 2 has another one for hooks: it needs the whole build. #}
{% macro duckdb__begin_utc() -%}
    set {{ 'global' if not dbt_version.startswith('1.') }} TimeZone = 'UTC'
{%- endmacro %}
