{{ config(indexes=[{'columns': ['job_key']}] if target.type == 'postgres' else []) }}
-- The last spell of each period.
select
    periods.organisation,
    periods.job_key || ' ' || cast(periods.period as {{ dbt.type_string() }}) as period_key,
    periods.job_key,
    periods.id,
    periods.public_id,
    periods.period,
    {{- of('spells', short_columns() + pay_columns() + ['city', 'country', 'is_remote']) }}
    {{- of('periods', ['is_open', 'was_open_before', 'opened_after', 'opened_on', 'open_since', 'shown_from', 'closed_after', 'closed_by', 'closed_on']) }}
    periods.shown_from as surely_open_from,
    periods.open_until as surely_open_until,
    coalesce(periods.opened_after, {{ beginning_of_time() }}) as maybe_open_from,
    coalesce(periods.closed_by, {{ end_of_time() }}) as maybe_open_until,
    {{- of('periods', ['days_open_at_least', 'days_open_at_most', 'built_by']) }}
    spells.version,
    periods.recorded_at,
    spells.updated_at
from {{ ref('public_jobs', 'public_jobs__stg_periods') }} as periods
inner join {{ ref('public_jobs', 'public_jobs__job_spells') }} as spells
    on periods.job_key = spells.job_key and periods.period = spells.period and spells.ended_as in ('open', 'closed')
