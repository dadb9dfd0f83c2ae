{%- set of_pay = [
    'min_salary', 'max_salary', 'currency', 'salary_period', 'has_salary',
    'salary_low', 'salary_middle', 'salary_high', 'annual_low', 'annual_middle', 'annual_high',
] -%}
{%- set by_time = '(partition by job_key order by in_force_from)' -%}

with versions as (
    select
        organisation, job_key, id, public_id, job_title, department, location, seniority_level, type,
        in_force_from,
        {%- for column in of_pay %}
        {{ column }} as new_{{ column }},
        lag({{ column }}) over {{ by_time }} as old_{{ column }},
        {%- endfor %}
        lag(in_force_from) over {{ by_time }} is not null as has_previous
    from {{ ref('public_jobs', 'public_jobs__job_versions') }}
),

changes as (
    select
        *,
        new_annual_middle is not null and old_annual_middle is not null as are_annual,
        case when new_annual_middle is not null and old_annual_middle is not null
            then old_annual_middle else old_salary_middle end as old_amount,
        case when new_annual_middle is not null and old_annual_middle is not null
            then new_annual_middle else new_salary_middle end as new_amount
    from versions
    where
        has_previous
        and (old_has_salary or new_has_salary)
        and (
            old_salary_low is distinct from new_salary_low
            or old_salary_high is distinct from new_salary_high
            or old_currency is distinct from new_currency
            or lower(old_salary_period) is distinct from lower(new_salary_period)
        )
),

-- A range that has gained or lost an end has another middle and not other pay. An API that never says
-- what a salary is paid for may still change from months to years, so what is three times as much or a
-- third is of another period.
compared as (
    select
        *,
        coalesce(
            old_currency = new_currency
            and (are_annual or lower(old_salary_period) is not distinct from lower(new_salary_period))
            and coalesce(old_min_salary > 0, false) = coalesce(new_min_salary > 0, false)
            and coalesce(old_max_salary > 0, false) = coalesce(new_max_salary > 0, false)
            and new_amount between old_amount / 3 and old_amount * 3,
            false
        ) as is_comparable
    from changes
),

listed as (
    select job_key, changed_by, max(changed_after) as changed_after
    from {{ ref('public_jobs', 'public_jobs__job_changes') }}
    where field in ('min_salary', 'max_salary', 'currency')
    group by job_key, changed_by
)

select
    compared.organisation,
    compared.job_key,
    compared.id,
    compared.public_id,
    compared.job_title,
    compared.department,
    compared.location,
    compared.seniority_level,
    compared.type,
    listed.changed_after,
    compared.in_force_from as changed_by,
    {%- for version in ('old', 'new') %}
    {{ pay_as_text('compared.' ~ version ~ '_') }} as {{ version }}_pay,
    {%- endfor %}
    {%- for column in ('salary_low', 'salary_middle', 'salary_high', 'currency', 'salary_period', 'annual_low', 'annual_middle', 'annual_high') %}
    compared.old_{{ column }},
    compared.new_{{ column }},
    {%- endfor %}
    compared.is_comparable,
    case
        when compared.is_comparable
            then round(1000 * compared.new_amount / compared.old_amount - 1000) / 10
    end as change_percent
from compared
left join listed
    on compared.job_key = listed.job_key and compared.in_force_from = listed.changed_by
