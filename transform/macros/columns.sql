{# Empty text and null are the same: target-duckdb has no empty text. #}
{% macro text(column) -%}
    nullif(cast({{ column }} as {{ dbt.type_string() }}), '')
{%- endmacro %}


{# Null is what no double can hold, so that one value never stops a build. #}
{% macro number(column) -%}
    case
        when {{ column }} = 0 then cast(0 as {{ double() }})
        when abs({{ column }}) between 1e-300 and 1e300 then cast({{ column }} as {{ double() }})
    end
{%- endmacro %}


{# A number as people write it, the same on all databases: 85000 and not 85000.0. #}
{% macro number_as_text(column) -%}
    case
        when {{ column }} = round({{ column }}) and abs({{ column }}) < 1e18
            then cast(cast({{ column }} as bigint) as {{ dbt.type_string() }})
        else cast({{ column }} as {{ dbt.type_string() }})
    end
{%- endmacro %}


{# The value of the field that a row of `changed` names, in a version of its job, as text. #}
{% macro value_of(version, columns) -%}
    case changed.field
        {%- for column, group in columns.items() %}
        {%- set value = version ~ '.' ~ column %}
        when '{{ column }}' then {{ number_as_text(value) if group == 'number' else value }}
        {%- endfor %}
    end
{%- endmacro %}


{# The same as a number, if it is one. #}
{% macro number_of(version, columns) -%}
    case changed.field
        {%- for column, group in columns.items() if group == 'number' %}
        when '{{ column }}' then {{ version }}.{{ column }}
        {%- endfor %}
    end
{%- endmacro %}


{# From one time to another in days, to a tenth. #}
{% macro days_between(first, last) -%}
    cast(
        round(cast({{ seconds_between(first, last) }} / 86400 as numeric(18, 6)), 1)
        as {{ double() }}
    )
{%- endmacro %}
