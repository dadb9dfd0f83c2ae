{# Text without the blanks at its ends. Empty text and null are the same: target-duckdb has no empty text. #}
{% macro trimmed(value) -%}
    nullif(trim(cast({{ value }} as {{ dbt.type_string() }}), {{ blanks() }}), '')
{%- endmacro %}


{# The same in one form of Unicode. Blanks and forms would split groups. #}
{% macro text(value) -%}
    {{ composed(trimmed(value)) }}
{%- endmacro %}


{# The same of a column that may be long: to trim it takes long, and few have blanks there. #}
{% macro long_text(column) -%}
    {%- set as_it_is = 'cast(' ~ column ~ ' as ' ~ dbt.type_string() ~ ')' -%}
    case
        when {{ dbt.position('left(' ~ as_it_is ~ ', 1)', blanks()) }} > 0
            or {{ dbt.position('right(' ~ as_it_is ~ ', 1)', blanks()) }} > 0
            then {{ text(column) }}
        else {{ composed(as_it_is) }}
    end
{%- endmacro %}


{# All that Unicode calls white space, the zero-width space and joiner, and a byte order mark. #}
{% macro blanks() -%}
    chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || '{{
        "\u0020\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b"
        ~ "\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
    }}'
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


{# How many characters of a value the tables of values and of events have. The histories have all. #}
{% macro short() -%}500{%- endmacro %}


{# What a group is called that has no value. #}
{% macro or_not_given(column) -%}
    coalesce({{ column }}, 'not given')
{%- endmacro %}


{# Bounds of what has no other. They are not null: DuckDB joins by comparisons fast, by `or` slowly. #}
{% macro beginning_of_time() -%}
    cast('0001-01-01' as timestamp)
{%- endmacro %}

{% macro end_of_time() -%}
    cast('9999-12-31' as timestamp)
{%- endmacro %}


{# The Monday of a week, the first day of a month and so on. BigQuery's weeks begin on Sunday. #}
{% macro first_day_of(part, time) -%}
    {%- if part == 'week' and target.type == 'bigquery' -%}
    {%- set since_a_monday = dbt.datediff("date '1970-01-05'", time, 'day') -%}
    cast({{ dbt.dateadd('day', '-mod(' ~ since_a_monday ~ ', 7)', time) }} as date)
    {%- else -%}
    cast({{ dbt.date_trunc(part, time) }} as date)
    {%- endif -%}
{%- endmacro %}


{# A number of days before a time. BigQuery would return a datetime, which no timestamp compares with. #}
{% macro days_before(time, days) -%}
    cast({{ dbt.dateadd('day', -days, time) }} as timestamp)
{%- endmacro %}


{# From one time to another in days, to a tenth. #}
{% macro days_between(first, last) -%}
    cast(
        round(cast({{ dbt.datediff(first, last, 'second') }} as numeric(18, 6)) / 86400, 1)
        as {{ double() }}
    )
{%- endmacro %}


{# The columns of text for fields of additional_fields that the variable extra_fields names. #}
{% macro extra_columns() -%}
    {%- for field, column in extra_fields().items() %}
    {%- set name = dbt.string_literal(dbt.escape_single_quotes(field)) %}
    {{ trimmed(json_field('additional_fields', name)) }} as {{ adapter.quote(column) }},
    {%- endfor %}
{% endmacro %}


{#
The column of each such field: its name in snake case. If a table has a column of that name already,
or another field would get it, it begins with field_, so that no field hides or stops anything.
#}
{% macro extra_fields() %}
    {%- set given = var('extra_fields') -%}
    {%- if has_all_fields() -%}
        {%- set given = known_fields() -%}
    {%- elif given is string -%}
        {%- set given = given.split(',') | map('trim') | list -%}
    {%- endif -%}
    {%- set columns = {} -%}
    {%- for field in given if field not in columns -%}
        {%- set words = modules.re.sub('([A-Z])', '_\\1', field) | lower -%}
        {%- set column = namespace(name=modules.re.sub('\\W', '_', words)[:50] or 'unnamed') -%}
        {%- set taken = own_columns() + columns.values() | list -%}
        {%- for _ in taken if column.name in taken -%}
            {%- set column.name = 'field_' ~ column.name -%}
        {%- endfor -%}
        {%- do columns.update({field: column.name}) -%}
    {%- endfor -%}
    {{ return(columns) }}
{% endmacro %}


{# Whether every field is to have a column, known or not. #}
{% macro has_all_fields() %}
    {{ return(var('extra_fields') is string and var('extra_fields') | trim | lower == 'all') }}
{% endmacro %}


{# Every field without a column that a version has had. Those of stg_values, because `fields` is made after the tables that ask. #}
{% macro known_fields() %}
    {%- set table = ref('public_jobs', 'public_jobs__stg_values') -%}
    {%- if not execute or not load_relation(table) -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set found = run_query('select distinct field from ' ~ table ~ ' where type is not null') -%}
    {{ return(found.columns[0].values() | sort(case_sensitive=true)) }}
{% endmacro %}


{# The seeds of locations, of departments and of rules, the package's or your own. #}
{% macro locations() -%}
    {{ ref(var('locations')[0], var('locations')[1]) }}
{%- endmacro %}

{% macro departments() %}
    {{ return(ref(var('departments')[0], var('departments')[1])) }}
{% endmacro %}

{% macro posting_rules() -%}
    {{ ref(var('posting_rules')[0], var('posting_rules')[1]) }}
{%- endmacro %}


{# What a question says, from its JSON. Where neither an id nor a text is, there is no question. #}
{% macro question_columns(item) -%}
    {%- for column, name in {'question_id': 'id', 'question': 'question', 'type': 'type'}.items() %}
    {{ trimmed(json_field(item, "'" ~ name ~ "'")) }} as {{ column }},
    {%- endfor %}
    case {{ json_field(item, "'required'") }} when 'true' then true when 'false' then false end
        as answer_required
{%- endmacro %}


{# What the salary is paid for, if the API sends it in the field that a variable names. #}
{% macro salary_period(relation) -%}
    {%- set field = "'" ~ var('salary_period_field') ~ "'" -%}
    {{ trimmed(json_field(relation ~ '.additional_fields', field)) }}
{%- endmacro %}


{# The columns of pay that compare, from min_salary, max_salary and salary_period. #}
{% macro comparable_salary() -%}
    {%- set ends = [
        'case when min_salary > 0 then min_salary end',
        'case when max_salary > 0 then max_salary end'
    ] -%}
    {%- set low, high = of_known('least', ends), of_known('greatest', ends) -%}
    {%- set amounts = {'low': low, 'middle': '(' ~ low ~ ' + ' ~ high ~ ') / 2', 'high': high} -%}
    coalesce(min_salary > 0 or max_salary > 0, false) as has_salary
    {%- for name, amount in amounts.items() %},
    {{ amount }} as salary_{{ name }}
    {%- endfor %}
    {%- for name, amount in amounts.items() %},
    {{ amount }} * case lower(salary_period)
        {%- for period, in_a_year in var('periods_in_a_year').items() %}
        when '{{ period | lower }}' then {{ in_a_year }}
        {%- endfor %}
    end as annual_{{ name }}
    {%- endfor %}
{%- endmacro %}


{# Pay as people write it, from columns that begin with a prefix; null if there is none. #}
{% macro pay_as_text(prefix) -%}
    {%- set amount = prefix ~ 'salary_' -%}
    {%- set currency = "coalesce(" ~ prefix ~ "currency || ' ', '')" -%}
    case
        when {{ prefix }}has_salary then
            case
                when coalesce({{ prefix }}max_salary, 0) <= 0
                    then 'from ' || {{ currency }} || {{ number_as_text(amount ~ 'low') }}
                when coalesce({{ prefix }}min_salary, 0) <= 0
                    then 'up to ' || {{ currency }} || {{ number_as_text(amount ~ 'high') }}
                when {{ amount }}low = {{ amount }}high
                    then {{ currency }} || {{ number_as_text(amount ~ 'low') }}
                else {{ currency }} || {{ number_as_text(amount ~ 'low') }}
                    || '–' || {{ number_as_text(amount ~ 'high') }}
            end
            || coalesce(' per ' || lower({{ prefix }}salary_period), '')
    end
{%- endmacro %}


{# What a version has that is no pay and no long text. #}
{% macro short_columns() %}
    {{ return([
        'job_title', 'location', 'department', 'type', 'seniority_level',
        'years_experience', 'primary_language', 'education_level',
    ]) }}
{% endmacro %}

{# The four of them by which jobs move. #}
{% macro dimensions() %}
    {{ return(['department', 'location', 'seniority_level', 'type']) }}
{% endmacro %}

{# The columns of pay as the API sends them, and those that compare. #}
{% macro sent_pay() %}
    {{ return(['min_salary', 'max_salary', 'currency', 'salary_period']) }}
{% endmacro %}

{% macro pay_columns() %}
    {{ return(sent_pay() + [
        'has_salary', 'salary_low', 'salary_middle', 'salary_high', 'annual_low', 'annual_middle', 'annual_high', 'pay',
    ]) }}
{% endmacro %}

{# The names of the columns that extra_fields makes. #}
{% macro extra_names() %}
    {%- set names = [] -%}
    {%- for column in extra_fields().values() -%}{%- do names.append(adapter.quote(column)) -%}{%- endfor -%}
    {{ return(names) }}
{% endmacro %}

{# Columns of a relation, one a line. #}
{% macro of(relation, columns) -%}
    {%- for column in columns %}
    {{ relation }}.{{ column }},
    {%- endfor %}
{%- endmacro %}

{# Several columns in one text, which is never null. #}
{% macro together(columns, relation) -%}
    {%- for column in columns -%}
    coalesce(cast({{ relation }}.{{ column }} as {{ dbt.type_string() }}), '') {{- " || chr(31) || " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

{# A number of days in words; null if there is none. #}
{% macro days_in_words(column) -%}
    {{ number_as_text(column) }} || case when {{ column }} = 1 then ' day' else ' days' end
{%- endmacro %}
