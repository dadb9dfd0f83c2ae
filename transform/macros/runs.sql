{# The snapshot of publications, or nothing before the first build. #}
{% macro load_history() %}
    {% set snapshot = graph.nodes['snapshot.public_jobs.public_jobs__publication_history'] %}
    {{ return(load_relation(api.Relation.create(
        database=snapshot.database,
        schema=snapshot.schema,
        identifier=snapshot.alias
    ))) }}
{% endmacro %}


{# Refuses what cannot work: models without history, and history without rows. #}
{% macro check_run() %}
    {%- set selected = [] -%}
    {%- for it in selected_resources if it.startswith(('model.public_jobs.', 'snapshot.public_jobs.')) -%}
        {%- do selected.append(it) -%}
    {%- endfor -%}
    {%- if not execute or not selected -%}
        {{ return('') }}
    {%- endif -%}
    {# The final tables read the snapshots, which `dbt run` leaves out. #}
    {%- if flags.WHICH == 'run' and not load_history() -%}
        {%- do exceptions.raise_compiler_error(
            'There is no history yet. `dbt build` records it, and builds the tables; `dbt run` does not.'
        ) -%}
    {%- endif -%}
    {%- if flags.EMPTY and load_history() -%}
        {%- do exceptions.raise_compiler_error(
            '--empty would close all jobs in the history of ' ~ target.schema
            ~ ': leave it out, or take a target with another schema.'
        ) -%}
    {%- endif -%}
{% endmacro %}


{# One line of how the build ended, because `build` in Meltano prints warnings and errors alone. #}
{% macro report(results) %}
    {%- set counts = {} -%}
    {%- for it in results if it.node.package_name == 'public_jobs'
            and it.node.resource_type not in ('operation', 'exposure') -%}
        {%- set name = it.node.resource_type ~ 's ' ~ it.status -%}
        {%- do counts.update({name: counts.get(name, 0) + 1}) -%}
    {%- endfor -%}
    {%- if execute and counts and flags.WHICH == 'build' -%}
        {%- set parts = [] -%}
        {%- for name, count in counts.items() | sort -%}
            {%- do parts.append(count ~ ' ' ~ name) -%}
        {%- endfor -%}
        {%- do print('public_jobs: ' ~ parts | join(', ')) -%}
    {%- endif -%}
{% endmacro %}
