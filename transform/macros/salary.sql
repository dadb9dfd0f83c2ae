{# What the salary is paid for, if the API sends it in the field that a variable names. #}
{% macro salary_period(relation) -%}
    {%- set field = "'" ~ var('salary_period_field') ~ "'" -%}
    {{ json_as_text(json_value(relation ~ '.additional_fields', field)) }}
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
        when '{{ period }}' then {{ in_a_year }}
        {%- endfor %}
    end as annual_{{ name }}
    {%- endfor %}
{%- endmacro %}
