{{ config(materialized='table' if copies_texts() else 'view') }}
{%- set text = dbt.type_string() -%}
{%- set dimensions = "'department', 'location', 'seniority_level', 'type'" -%}
{%- set of_pay = ['min_salary', 'max_salary', 'currency', 'additional_fields.' ~ var('salary_period_field')] -%}

with events as (
    select
        job_key,
        case when period > 1 then 'reopened' else 'opened' end as event,
        opened_after as happened_after,
        opened_by as happened_by,
        cast(null as {{ text }}) as field,
        cast(null as {{ text }}) as old_value,
        cast(null as {{ text }}) as new_value,
        cast(null as {{ double() }}) as change_percent,
        {{ days_between('closed_before', 'opened_by') }} as days_away,
        cast(null as {{ double() }}) as days_open,
        was_open_before,
        false as is_long
    from (
        select
            *,
            lag(closed_by) over (partition by job_key order by period) as closed_before
        from {{ in_this_file(ref('public_jobs', 'public_jobs__publication_periods')) }}
    ) as periods
    where opened_after is not null
    union all
    select
        job_key, 'closed', closed_after, closed_by, null, null, null, null, null,
        days_open_at_least, was_open_before, false
    from {{ in_this_file(ref('public_jobs', 'public_jobs__publication_periods')) }}
    where closed_by is not null
    union all
    select
        job_key, 'repriced', changed_after, changed_by, null, old_pay, new_pay, change_percent,
        null, null, null, false
    from {{ in_this_file(ref('public_jobs', 'public_jobs__pay_changes')) }}
    union all
    select
        job_key,
        case when field in ({{ dimensions }}) then 'moved' else 'edited' end,
        changed_after, changed_by, field, old_value, new_value, null, null, null, null,
        {# Null in older rows of a table. #}
        {{- 'coalesce(is_long, false)' if copies_texts() else 'is_long' }}
    from {{ in_this_file(ref('public_jobs', 'public_jobs__job_changes')) }}
    where field not in ('{{ of_pay | join("', '") }}')
)

select
    jobs.organisation,
    events.event,
    events.happened_after,
    events.happened_by,
    {{ local_day('events.happened_by') }} as happened_on,
    jobs.job_key,
    jobs.id,
    jobs.public_id,
    jobs.job_title,
    jobs.department,
    jobs.location,
    jobs.seniority_level,
    jobs.type,
    events.field,
    events.old_value,
    events.new_value,
    events.change_percent,
    events.days_away,
    events.days_open,
    events.was_open_before,
    events.is_long
from events
inner join {{ in_this_file(ref('public_jobs', 'public_jobs__jobs_ever')) }} as jobs using (job_key)
