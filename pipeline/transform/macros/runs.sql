{# The snapshot of publications, or nothing before the first build. #}
{% macro load_history() %}
    {% set snapshot = graph.nodes['snapshot.public_jobs.public_jobs__publication_history'] %}
    {{ return(load_relation(api.Relation.create(
        database=snapshot.database,
        schema=snapshot.schema,
        identifier=snapshot.alias
    ))) }}
{% endmacro %}


{# What the program of a project asks when the tap has lost its state: whether there was a build before. #}
{% macro print_whether_history_is_there() %}
    {%- do print('public_jobs: history is ' ~ ('there' if load_history() else 'not there')) -%}
{% endmacro %}


{# Refuses what cannot work: models without history, history without rows, days without a zone. #}
{% macro check_run() %}
    {%- set selected = [] -%}
    {%- for it in selected_resources if it.startswith(('model.public_jobs.', 'snapshot.public_jobs.')) -%}
        {%- do selected.append(it) -%}
    {%- endfor -%}
    {%- if not execute or not selected -%}
        {{ return('') }}
    {%- endif -%}
    {%- do check_variables() -%}
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
    {%- if var('time_zone') != 'UTC' and var('time_zone') not in modules.pytz.all_timezones -%}
        {%- do exceptions.raise_compiler_error(
            'No table was built: no time zone is called ' ~ var('time_zone')
            ~ '. Set the variable time_zone to a name such as Europe/Berlin.'
        ) -%}
    {%- endif -%}
{% endmacro %}


{# The variables that a project may set. #}
{% macro variables() %}
    {{ return([
        'database',
        'departments',
        'extra_fields',
        'grants',
        'ignored_fields',
        'locations',
        'lock_timeout',
        'periods_in_a_year',
        'posting_rules',
        'reposted_within_days',
        'salary_period_field',
        'schemas',
        'table_names',
        'time_zone',
    ]) }}
{% endmacro %}


{# Refuses names that nothing reads, and warns of fields that nothing has: neither would have an effect. #}
{% macro check_variables() %}
    {%- set wrong = [] -%}
    {# dbt 2 does not show what a project sets. #}
    {%- for scope, values in (adapter.config.vars.to_dict() if dbt_version.startswith('1.') else {}).items() -%}
        {%- if scope == 'public_jobs' -%}
            {%- for name in values or {} if name not in variables() -%}
                {%- do wrong.append('public_jobs has no variable ' ~ name) -%}
            {%- endfor -%}
        {%- elif modules.re.sub('[^a-z]', '', scope | lower) in ('publicjobs', 'publicjob', 'tappublicjobs') -%}
            {%- do wrong.append('the variables under ' ~ scope ~ ' belong under public_jobs') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name in var('table_names') if name not in ('jobs', 'job_details', 'job_publications') -%}
        {%- do wrong.append('table_names has ' ~ name ~ ', which is none of jobs, job_details, job_publications') -%}
    {%- endfor -%}
    {%- if wrong -%}
        {%- do exceptions.raise_compiler_error(
            'No table was built: ' ~ wrong | join('; ') ~ '. Correct vars in dbt_project.yml.'
        ) -%}
    {%- endif -%}
    {%- if var('extra_fields') and not has_all_fields() -%}
        {%- do warn_of_extra_fields() -%}
    {%- endif -%}
{% endmacro %}


{# Compares extra_fields with the fields of the build before, if there was one. #}
{% macro warn_of_extra_fields() %}
    {%- set node = graph.nodes['model.public_jobs.public_jobs__fields'] -%}
    {%- set fields = load_relation(api.Relation.create(
        database=node.database, schema=node.schema, identifier=node.alias
    )) -%}
    {%- set known = run_query('select distinct field from ' ~ fields).columns[0].values() if fields else none -%}
    {%- for name in extra_fields() if fields and name not in known -%}
        {%- do exceptions.warn(
            'extra_fields has ' ~ name ~ ', which no job has by the build before: its column is'
            ~ ' empty unless the field is new. Names are those in additional_fields, such as requiredSkills.'
        ) -%}
    {%- endfor -%}
{% endmacro %}


{#
One line of how the build ended, because `build` in Meltano prints warnings and errors alone; and when the list
was last read whole, from which schedules see that the tables are old. Of several lists, the oldest.
#}
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
        {%- set said = namespace(text='public_jobs: ' ~ parts | join(', ')) -%}
        {%- for it in results if it.node.name == 'public_jobs__stg_publications' and it.status == 'success' -%}
            {%- set oldest -%}
            select organisation, max(listed_at) as listed_at
            from {{ it.node.relation_name }}
            group by organisation
            order by listed_at
            limit 1
            {%- endset -%}
            {%- for organisation, listed_at in run_query(oldest).rows -%}
                {%- set said.text = said.text ~ '; ' ~ organisation ~ ' was last listed at ' ~ (listed_at | string)[:16] -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- do print(said.text) -%}
    {%- endif -%}
{% endmacro %}


{#
How long a build waits for a table that somebody reads. It makes each table anew, which takes the
place of the old one once no transaction reads that; others that want to read it wait behind it.
#}
{% macro limit_waiting() -%}
    {{ "set lock_timeout = '" ~ var('lock_timeout') ~ "'" if target.type == 'postgres' }}
{%- endmacro %}


{#
Lets roles read a table, whose rights end with the build before, because each build makes it anew.
A hook and no `grants` of dbt, which keeps what it parsed with the variables of then, and writes a role
as SQL and not as a name. Grants that a project of yours sets take the place of these.
#}
{% macro grant_reading() -%}
    {%- set given = var('grants', env_var('PUBLIC_JOBS_GRANTS', '')) -%}
    {%- set to = {'postgres': '', 'snowflake': 'role '}.get(target.type) -%}
    {%- for role in (given.split(',') if given is string else given) | map('trim') | select
            if to is not none and not model.config.grants %}
    grant select on {{ this }} to {{ to }}{{ adapter.quote(role) }};
    {%- endfor -%}
{%- endmacro %}


{#
PostgreSQL takes the rows of a computed column for few, and then compares each row of one table with
each of another. A build joins whole tables: one such join took ten minutes, and takes two seconds
without. And it takes longer to compile the expressions of such a query than to run it: where a server
does so, a build of 300 open jobs takes half as long again.
#}
{% macro plan_whole_tables() -%}
    {%- set off = "select set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true)" -%}
    {{ off if target.type == 'postgres' }}
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


{# Names of nodes begin with public_jobs__, so that none is a model of the user's; those of tables do not. #}
{% macro generate_alias_name(custom_alias_name=none, node=none) -%}
    {{ (custom_alias_name or node.name).removeprefix('public_jobs__') }}
{%- endmacro %}
