{# The schemas that the loader has filled, one for each organisation. #}
{% macro schemas() %}
    {%- set given = var('schemas', env_var('PUBLIC_JOBS_SCHEMAS', 'public_jobs')) -%}
    {%- set names = [] -%}
    {%- for name in (given.split(',') if given is string else given) | map('trim') if name not in names -%}
        {%- do names.append(name) -%}
    {%- endfor -%}
    {{ return(names) }}
{% endmacro %}


{#
Fields that the models leave out: the tap's setting of this name, unless the variable names others.
Each is in the list as it is given, in camel case as the API writes it, and in snake case as columns are.
#}
{% macro ignored_fields() %}
    {%- set given = var('ignored_fields', none) -%}
    {%- if given is none -%}
        {%- set given = fromjson(env_var('TAP_PUBLIC_JOBS_IGNORED_FIELDS', '') or '[]') -%}
    {%- endif -%}
    {%- if given is none or given is string or given is mapping -%}
        {%- do exceptions.raise_compiler_error(
            'ignored_fields, or TAP_PUBLIC_JOBS_IGNORED_FIELDS, must be a list of names, such as ["viewCount"].'
        ) -%}
    {%- endif -%}
    {%- set names = [] -%}
    {%- for name in given | map('string') -%}
        {%- set words = name.split('_') -%}
        {%- set camel_case = words[0] ~ words[1:] | map('capitalize') | join -%}
        {%- for form in [name, camel_case, modules.re.sub('([A-Z])', '_\\1', name) | lower] if form not in names -%}
            {%- do names.append(form) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if 'id' in names or 'public_id' in names -%}
        {%- do exceptions.raise_compiler_error(
            'ignored_fields must not have id or publicId, because they say which job it is: remove it.'
        ) -%}
    {%- endif -%}
    {{ return(names) }}
{% endmacro %}

{% macro ignored_column(group) -%}
    cast(null as {{ double() if group == 'number' else dbt.type_string() }})
{%- endmacro %}


{# Columns of one raw table, of all organisations that have it. JSON is text from here on. #}
{% macro raw(table, columns) %}
    {%- set loaded = [] -%}
    {%- for schema in schemas() -%}
        {%- set relation = source('public_jobs', table).incorporate(path={'schema': schema}) -%}
        {%- if is_loaded(relation, ['id'] + columns) -%}
            {%- do loaded.append(relation) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not loaded -%}
        {%- do exceptions.raise_compiler_error(
            'There is no table ' ~ table ~ ' in ' ~ schemas() | join(', ')
            ~ ': run the tap with its loader first. PUBLIC_JOBS_SCHEMAS names other schemas.'
        ) -%}
    {%- endif -%}
    {%- for relation in loaded %}
    select
        cast('{{ relation.schema }}' as {{ dbt.type_string() }}) as organisation,
        cast('{{ relation.schema }}' as {{ dbt.type_string() }}) || '/' || id as job_key,
        id
        {%- for column in columns %},
        {% if column == 'additional_fields' -%}
        {{ all_additional_fields(relation) }} as additional_fields
        {%- elif column in fields().get(table, {}) and column in ignored_fields() -%}
        {{ ignored_column(fields()[table][column]) }} as {{ column }}
        {%- elif fields().get(table, {}).get(column) == 'json' -%}
        {{ json_text(column) }} as {{ column }}
        {%- else -%}
        {{ column }}
        {%- endif -%}
        {%- endfor %}
    from {{ relation }}
    {% if not loop.last %}union all{% endif %}
    {%- endfor %}
{% endmacro %}


{# The rows of one raw table whose jobs are published, as the API sent them. #}
{% macro published(table) -%}
with raw as (
    {{ raw(table, fields()[table] | list + ['additional_fields']) }}
)

select
    raw.organisation,
    raw.job_key,
    raw.id,
    {%- for column, group in fields()[table].items() %}
    {{ 'raw.' ~ column if group == 'number' else 'cast(raw.' ~ column ~ ' as ' ~ dbt.type_string() ~ ')' }}
        as {{ column }},
    {%- endfor %}
    raw.additional_fields,
    publications.listed_at
from raw
inner join {{ ref('public_jobs', 'public_jobs__stg_publications') }} as publications using (job_key)
where publications.is_published
{%- endmacro %}


{#
The same rows as all models have them; ids stay as they are. Snapshots are taken before this, so that no
change here makes a version. A field that is ignored since yesterday, or a name of a department that is no longer
shown, is gone from the versions before, too.
#}
{% macro cleaned(relation, table, others=[]) -%}
select
    sent.organisation,
    sent.job_key,
    sent.id,
    {%- for column, group in fields()[table].items() %}
    {%- if column in ignored_fields() %}
    {{ ignored_column(group) }} as {{ column }},
    {%- elif column == 'public_id' %}
    sent.public_id,
    {%- else %}
    {%- set value = number('sent.' ~ column) if group == 'number' else long_text('sent.' ~ column) %}
    {{ 'coalesce(' ~ text('departments.shown_as') ~ ', ' ~ value ~ ')' if column == 'department' else value }}
        as {{ column }},
    {%- endif %}
    {%- endfor %}
    {%- set ignored = ignored_fields() %}
    {{ composed(json_with('sent.additional_fields', {}, ignored) if ignored else 'sent.additional_fields') }}
        as additional_fields,
    {%- for column in others %}
    sent.{{ column }},
    {%- endfor %}
    sent.listed_at
from {{ relation }} as sent
{%- if 'department' in fields()[table] %}
left join {{ in_this_file(departments()) }} as departments
    on {{ text('sent.department') }} = {{ text('departments.department') }}
{%- endif %}
{%- endmacro %}


{# Whether a table is there. Without it, history would close all jobs of an organisation it knows. #}
{% macro is_loaded(table, columns) %}
    {%- if not execute -%}
        {{ return(true) }}
    {%- endif -%}
    {%- if load_relation(table) -%}
        {%- set names = adapter.get_columns_in_relation(table) | map(attribute='name') | map('lower') | list -%}
        {%- set missing = columns | reject('in', names) | list -%}
        {%- if missing -%}
            {%- do exceptions.raise_compiler_error(
                table ~ ' lacks ' ~ missing | join(', ')
                ~ ': select all columns in the tap, set column_naming: snake_case there, and load'
                ~ ' into a new schema or drop the tables of this one.'
            ) -%}
        {%- endif -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set history = load_history() -%}
    {%- set known = "select 1 from " ~ history ~ " where organisation = '" ~ table.schema ~ "'" -%}
    {%- if history and run_query(known ~ ' limit 1').rows -%}
        {%- do exceptions.raise_compiler_error(
            'There is no table ' ~ table ~ ', but history has jobs of ' ~ table.schema
            ~ ': load them first, or take ' ~ table.schema ~ ' off PUBLIC_JOBS_SCHEMAS.'
        ) -%}
    {%- endif -%}
    {%- do exceptions.warn('There is no table ' ~ table ~ ' yet: ' ~ table.schema ~ ' is left out.') -%}
    {{ return(false) }}
{% endmacro %}


{#
additional_fields, and in it each field that was given a column in Meltano's `schema` extra. So a
field has one history, whether or not it has a column.
#}
{% macro all_additional_fields(relation) %}
    {%- set known = ['id', 'additional_fields'] + (fields().values() | map('list') | sum(start=[])) -%}
    {%- set declared = {} -%}
    {%- for column in adapter.get_columns_in_relation(relation) if execute -%}
        {%- set name = column.name | lower -%}
        {%- if name not in known and not name.startswith('_sdc_') -%}
            {%- set words = name.split('_') -%}
            {%- set field = words[0] ~ words[1:] | map('capitalize') | join -%}
            {%- do declared.update({field: adapter.quote(column.name)}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set ignored = ignored_fields() -%}
    {%- if declared or ignored -%}
        {{ json_with('additional_fields', declared, ignored) }}
    {%- else -%}
        {{ json_text('additional_fields') }}
    {%- endif -%}
{%- endmacro %}


{#
A hash of what each version of a history has in its columns, because the texts of all versions do not
fit in memory, and reading them takes longer than the rest of a build. Each build adds the versions
that are new. The recipe is the SQL that cleans and hashes: if a variable or a new version of this
project changes it, all hashes are made anew. Each text is hashed before it is put together with
others, because DuckDB would hold a copy for each step.
#}
{% macro contents(history, table) -%}
{%- set hashes = [] -%}
{%- for column, group in fields()[table].items() -%}
    {%- do hashes.append('cast(' ~ column ~ ' as ' ~ dbt.type_string() ~ ')' if group == 'number' else dbt.hash(column)) -%}
{%- endfor -%}
{%- set period = salary_period('history') -%}
{#- Of the fields without a column, those of the detail count, and that of what a salary is paid for. -#}
{%- do hashes.append(dbt.hash(json_comparable('additional_fields')) if table == 'job_details' else period) -%}
{%- set content = dbt.hash("coalesce(" ~ hashes | join(", '') || chr(31) || coalesce(") ~ ", '')") -%}
{%- set recipe = local_md5(cleaned('history', table) ~ content ~ period) -%}
select
    dbt_scd_id,
    '{{ recipe }}' as recipe,
    {{ period }} as salary_period,
    {{ content }} as content
from {{ unread(history, this, recipe) }}
{%- endmacro %}


{#
A history, and in an incremental model only the versions that this table has not read by this recipe.
By the time too, because the database then passes over the texts of older versions.
#}
{% macro unread(history, table, recipe) -%}
    {{ history }} as history
    {%- if is_incremental() %}
    inner join (
        select versions.dbt_scd_id, versions.dbt_valid_from
        from {{ history }} as versions
        where not exists (
            select 1 from {{ table }} as known
            where versions.dbt_scd_id = known.dbt_scd_id and known.recipe = '{{ recipe }}'
        )
    ) as new_versions using (dbt_scd_id, dbt_valid_from)
    {%- endif %}
{%- endmacro %}


{#
The versions of a history. A build may see half a load: a row without a new listing, or no row for a
while. So a version counts from the first listing that was new when a build saw it, or after that;
until there is one it does not count. One that returns unchanged is the same version.
#}
{% macro versions(history, contents) -%}
{%- set by_time = '(partition by job_key order by seen_by, dbt_valid_from)' -%}
with listings as (
    select
        *,
        lead(listed_at) over (partition by organisation order by listed_at) as next_listed_at,
        lead(recorded_at) over (partition by organisation order by listed_at) as next_recorded_at
    from {{ ref('public_jobs', 'public_jobs__stg_built_listings') }}
),

seen as (
    select
        history.organisation,
        history.job_key,
        history.dbt_scd_id,
        history.dbt_valid_from,
        -- The listing is recorded last in each build. So a version that is recorded later came
        -- with half a load, and counts from the next listing.
        case
            when history.dbt_valid_from > listings.recorded_at then listings.next_listed_at
            else history.listed_at
        end as seen_by,
        case
            when history.dbt_valid_from > listings.recorded_at then listings.next_recorded_at
            else coalesce(listings.recorded_at, history.dbt_valid_from)
        end as updated_at,
        contents.salary_period,
        contents.content
    from {{ history }} as history
    inner join {{ contents }} as contents using (dbt_scd_id)
    left join listings using (organisation, listed_at)
),

last_of_listing as (
    select *
    from (
        select *, lead(seen_by) over {{ by_time }} as next_seen_by
        from seen
        where seen_by is not null
    ) as compared
    where seen_by is distinct from next_seen_by
),

different as (
    select *
    from (
        select *, lag(content) over {{ by_time }} as previous_content
        from last_of_listing
    ) as compared
    where content is distinct from previous_content
)

-- The first known version stands for all time before it.
select
    organisation,
    job_key,
    dbt_scd_id,
    dbt_valid_from,
    lag(dbt_scd_id) over {{ by_time }} as old_scd_id,
    lag(dbt_valid_from) over {{ by_time }} as old_valid_from,
    row_number() over {{ by_time }} as version,
    seen_by,
    case
        when lag(seen_by) over {{ by_time }} is null then {{ beginning_of_time() }}
        else seen_by
    end as in_force_from,
    coalesce(lead(seen_by) over {{ by_time }}, {{ end_of_time() }}) as in_force_until,
    cast(updated_at as timestamp) as updated_at,
    salary_period
from different
{%- endmacro %}
