{# Names of nodes begin with public_jobs__, so that none is a model of the user's; those of tables do not. #}
{% macro generate_alias_name(custom_alias_name=none, node=none) -%}
    {{ (custom_alias_name or node.name).removeprefix('public_jobs__') }}
{%- endmacro %}
