{%- set columns = fields()['jobs'] | list + fields()['job_details'] | list -%}
{%- set filled = {'min_salary': '> 0', 'max_salary': '> 0', 'knockout_questions': "<> '[]'"} -%}

with counted as (
    select
        organisation,
        {%- for column in columns %}
        count(case when {{ column }} {{ filled.get(column, 'is not null') }} then 1 end) as {{ column }},
        {%- endfor %}
        count(*) as open_jobs
    from {{ ref('public_jobs', 'public_jobs__open_jobs') }}
    group by organisation
)

{% for column in columns -%}
select
    organisation,
    '{{ column }}' as field,
    {{ column }} as filled_jobs,
    cast(round(cast({{ column }} as numeric(18, 6)) / open_jobs, 4) as {{ double() }}) as share_filled
from counted
{{ 'union all' if not loop.last }}
{% endfor %}
