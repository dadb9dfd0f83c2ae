{{ config(indexes=[{'columns': ['happened_by']}] if target.type == 'postgres' else []) }}
{%- set text = dbt.type_string() -%}
{%- set spells = ref('public_jobs', 'public_jobs__job_spells') -%}
{%- set of_pay = sent_pay()[:3] + ['additional_fields.' ~ var('salary_period_field')] -%}
{%- set by_time = '(partition by job_key order by version)' -%}
{%- set of_the_job = ['organisation', 'job_key', 'id', 'public_id'] -%}
{%- set as_then = ['job_title', 'department', 'location', 'seniority_level', 'type', 'currency'] -%}
{%- set no_text, no_number, no_flag = 'cast(null as ' ~ text ~ ')', 'cast(null as ' ~ double() ~ ')', 'cast(null as boolean)' -%}

with periods as (
    select *, lag(closed_by) over (partition by job_key order by period) as closed_before
    from {{ ref('public_jobs', 'public_jobs__stg_periods') }}
),

versions as (
    select
        {{- of('versions', of_the_job + as_then + ['version', 'in_force_from', 'recorded_at']) }}
        {%- for column in pay_columns() %}
        {{ column if column != 'currency' else 'currency as new_currency' }},
        lag({{ column }}) over {{ by_time }} as old_{{ column }},
        {%- endfor %}
        lag(version) over {{ by_time }} is not null as has_previous
    from {{ ref('public_jobs', 'public_jobs__stg_job_versions') }} as versions
),

openings as (
    select
        {{- of('spells', of_the_job + as_then) }}
        spells.began_as as event,
        cast(spells.period as {{ text }}) as nth,
        spells.opened_after as happened_after,
        spells.shown_from as happened_by,
        spells.open_since as happened_on,
        periods.recorded_at,
        spells.version,
        {{ no_text }} as field,
        {{ no_text }} as old_value,
        {{ no_text }} as new_value,
        false as is_long,
        cast(1 as bigint) as step,
        {{ no_number }} as old_salary_low,
        {{ no_number }} as old_salary_high,
        spells.salary_low as new_salary_low,
        spells.salary_high as new_salary_high,
        {{ no_number }} as old_annual_middle,
        spells.annual_middle as new_annual_middle,
        {{ no_text }} as old_currency,
        {{ no_flag }} as is_comparable,
        {{ no_number }} as change_percent,
        {{ days_between('periods.closed_before', 'spells.shown_from') }} as days_away,
        {{ no_number }} as days_open_at_least,
        spells.was_open_before
    from {{ spells }} as spells
    inner join periods on spells.job_key = periods.job_key and spells.period = periods.period
    where spells.began_as in ('found', 'opened', 'reopened')
),

-- One that is taken back stays, so that an export of what is new can replace it: the job was missing, and is
-- listed again.
closings as (
    select
        {{- of('spells', of_the_job + as_then) }}
        case when spells.ended_as = 'closed' then 'closed' else 'not closed' end as event,
        cast(spells.period as {{ text }}) as nth,
        periods.closed_after as happened_after,
        coalesce(periods.closed_by, periods.returned_by) as happened_by,
        case when spells.ended_as = 'closed' then spells.until_day else {{ local_day('periods.returned_by') }} end
            as happened_on,
        periods.updated_at as recorded_at,
        spells.version,
        {{ no_text }} as field, {{ no_text }} as old_value, {{ no_text }} as new_value, false as is_long,
        case when spells.ended_as = 'closed' then -1 else 0 end as step,
        spells.salary_low as old_salary_low,
        spells.salary_high as old_salary_high,
        {{ no_number }} as new_salary_low,
        {{ no_number }} as new_salary_high,
        spells.annual_middle as old_annual_middle,
        {{ no_number }} as new_annual_middle,
        spells.currency as old_currency,
        {{ no_flag }} as is_comparable, {{ no_number }} as change_percent, {{ no_number }} as days_away,
        case when spells.ended_as = 'closed' then periods.days_open_at_least end as days_open_at_least,
        spells.was_open_before
    from {{ spells }} as spells
    inner join periods on spells.job_key = periods.job_key and spells.period = periods.period
    where spells.ended_as = 'closed' or (spells.ended_as = 'open' and periods.returned_by is not null)
),

-- A change of columns that leaves the pay as it was is none.
repriced as (
    select
        *,
        -- A range that has gained or lost an end has another middle and not other pay. An API that never says
        -- what a salary is paid for may still change from months to years, so what is three times as much or a
        -- third is of another period.
        coalesce(
            old_currency = currency
            and (are_annual or lower(old_salary_period) is not distinct from lower(salary_period))
            and coalesce(old_min_salary > 0, false) = coalesce(min_salary > 0, false)
            and coalesce(old_max_salary > 0, false) = coalesce(max_salary > 0, false)
            and new_amount between old_amount / 3 and old_amount * 3,
            false
        ) as is_comparable
    from (
        select
            *,
            annual_middle is not null and old_annual_middle is not null as are_annual,
            case when annual_middle is not null and old_annual_middle is not null
                then old_annual_middle else old_salary_middle end as old_amount,
            case when annual_middle is not null and old_annual_middle is not null
                then annual_middle else salary_middle end as new_amount
        from versions
        where
            has_previous
            and (old_has_salary or has_salary)
            and (
                old_salary_low is distinct from salary_low
                or old_salary_high is distinct from salary_high
                or old_currency is distinct from currency
                or lower(old_salary_period) is distinct from lower(salary_period)
            )
    ) as with_amounts
),

-- No listing bounds what only the detail says.
listed as (
    select job_key, changed_by, max(changed_after) as changed_after
    from {{ ref('public_jobs', 'public_jobs__stg_changes') }}
    where field in ('{{ sent_pay()[:3] | join("', '") }}')
    group by job_key, changed_by
),

pay_events as (
    select
        {{- of('repriced', of_the_job + as_then) }}
        'repriced' as event,
        cast(repriced.version as {{ text }}) as nth,
        listed.changed_after as happened_after,
        repriced.in_force_from as happened_by,
        {{ local_day('repriced.in_force_from') }} as happened_on,
        repriced.recorded_at,
        repriced.version,
        {{ no_text }} as field, old_pay as old_value, pay as new_value, false as is_long,
        0 as step,
        old_salary_low, old_salary_high, salary_low as new_salary_low, salary_high as new_salary_high,
        old_annual_middle, annual_middle as new_annual_middle, old_currency,
        is_comparable,
        case when is_comparable then round(1000 * new_amount / old_amount - 1000) / 10 end as change_percent,
        {{ no_number }} as days_away, {{ no_number }} as days_open_at_least, {{ no_flag }} as was_open_before
    from repriced
    left join listed on repriced.job_key = listed.job_key and repriced.in_force_from = listed.changed_by
),

edits as (
    select
        case when field in ('{{ dimensions() | join("', '") }}') then 'moved' else 'edited' end as event,
        field as name, job_key, changed_after, changed_by, recorded_at, field, old_value, new_value, is_long
    from {{ ref('public_jobs', 'public_jobs__stg_changes') }}
    where field not in ('{{ of_pay | join("', '") }}')
    union all
    select
        'question ' || change,
        cast(row_number() over (
            partition by job_key, changed_by, change order by question_id, question, old_question, answer_required
        ) as {{ text }}),
        job_key, cast(null as timestamp), changed_by, recorded_at, 'knockout_questions', old_question, question, false
    from {{ ref('public_jobs', 'public_jobs__stg_question_changes') }}
),

field_events as (
    select
        {{- of('versions', of_the_job + as_then) }}
        edits.event,
        cast(versions.version as {{ text }}) || ' ' || edits.name as nth,
        edits.changed_after as happened_after,
        edits.changed_by as happened_by,
        {{ local_day('edits.changed_by') }} as happened_on,
        edits.recorded_at,
        versions.version,
        edits.field, edits.old_value, edits.new_value, edits.is_long,
        0 as step,
        {{ no_number }} as old_salary_low, {{ no_number }} as old_salary_high,
        {{ no_number }} as new_salary_low, {{ no_number }} as new_salary_high,
        {{ no_number }} as old_annual_middle, {{ no_number }} as new_annual_middle, {{ no_text }} as old_currency,
        {{ no_flag }} as is_comparable, {{ no_number }} as change_percent, {{ no_number }} as days_away,
        {{ no_number }} as days_open_at_least, {{ no_flag }} as was_open_before
    from edits
    inner join {{ ref('public_jobs', 'public_jobs__stg_job_versions') }} as versions
        on edits.job_key = versions.job_key and edits.changed_by = versions.in_force_from
),

events as (
    select * from openings
    union all
    select * from closings
    union all
    select * from pay_events
    union all
    select * from field_events
),

-- Jobs that left a department together, after which no open job was in it: it is likely only called otherwise.
moves as (
    select organisation, field, old_value, new_value, changed_by
    from {{ ref('public_jobs', 'public_jobs__stg_changes') }}
    where field in ('{{ dimensions() | join("', '") }}')
    group by organisation, field, old_value, new_value, changed_by
    having count(*) > 1
),

places as (
    {%- for field in dimensions() %}
    select organisation, '{{ field }}' as field, {{ field }} as place, from_at, until_at from {{ spells }}
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

renames as (
    select moves.organisation, moves.field, moves.old_value, moves.new_value, moves.changed_by
    from moves
    left join places
        on
            moves.organisation = places.organisation
            and moves.field = places.field
            and moves.old_value = places.place
            and moves.changed_by >= places.from_at
            and moves.changed_by < places.until_at
    group by moves.organisation, moves.field, moves.old_value, moves.new_value, moves.changed_by
    having count(places.place) = 0
),

{% set seconds = dbt.datediff('events.happened_after', 'events.happened_by', 'second') -%}
{% set half = 'cast(floor(' ~ seconds ~ ' / 2) as bigint)' -%}
dated as (
    select
        events.*,
        -- With one sync a night, the middle of the time in which it happened is on the day before.
        case
            when {{ seconds }} <= 36 * 3600
                then {{ local_day(dbt.dateadd('second', half, 'events.happened_after')) }}
        end as likely_on,
        renames.changed_by is not null as is_rename
    from events
    left join renames
        on
            events.event = 'moved'
            and events.organisation = renames.organisation
            and events.field = renames.field
            and events.old_value = renames.old_value
            and events.new_value = renames.new_value
            and events.happened_by = renames.changed_by
)

select
    organisation,
    job_key || ' ' || replace(event, 'not closed', 'closed') || ' ' || nth as event_key,
    event,
    case
        when event = 'found' then 'open before anybody looked'
        when event = 'reopened' then 'back after ' || {{ days_in_words('days_away') }}
        when event = 'closed'
            then 'open for ' || case when was_open_before then 'at least ' else '' end
                || {{ days_in_words('days_open_at_least') }}
        when event = 'not closed' then 'listed again: it was missing, and not closed'
        when event = 'repriced'
            then coalesce(old_value, 'no pay') || ' → ' || coalesce(new_value, 'no pay') || coalesce(
                ' (' || case when change_percent > 0 then '+' else '' end
                || {{ number_as_text('change_percent') }} || ' %)', ''
            )
        when event = 'question reworded' then coalesce(old_value, 'none') || ' → ' || coalesce(new_value, 'none')
        when event like 'question %' then coalesce(new_value, 'a question without a text')
        when
            is_long
            or left(old_value, 1) || right(old_value, 1) in ('[]', '{}')
            or left(new_value, 1) || right(new_value, 1) in ('[]', '{}')
            then field
        when event in ('moved', 'edited')
            then field || ': ' || coalesce(old_value, 'none') || ' → ' || coalesce(new_value, 'none')
    end as in_words,
    happened_after,
    happened_by,
    happened_on,
    likely_on,
    job_key,
    id,
    public_id,
    {{- of('dated', as_then) }}
    version,
    field,
    old_value,
    new_value,
    is_long,
    step,
    old_currency,
    old_salary_low,
    new_salary_low,
    old_salary_high,
    new_salary_high,
    old_annual_middle,
    new_annual_middle,
    case
        when event in ('found', 'opened', 'reopened') then new_annual_middle
        when event = 'closed' then -old_annual_middle
        when event = 'repriced' and old_currency = currency
            then coalesce(new_annual_middle, 0) - coalesce(old_annual_middle, 0)
    end as annual_change,
    is_comparable,
    change_percent,
    days_away,
    days_open_at_least,
    was_open_before,
    case when event = 'moved' then is_rename end as is_rename,
    recorded_at as updated_at
from dated
