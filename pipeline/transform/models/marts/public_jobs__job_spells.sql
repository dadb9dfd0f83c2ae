{{ config(indexes=[{'columns': ['job_key']}, {'columns': ['from_day', 'until_day']}] if target.type == 'postgres' else []) }}
{%- set by_time = '(partition by job_key, period order by from_at)' -%}
{%- set never = "cast('9999-12-31' as date)" -%}

with listings as (
    select organisation, {{ local_day('listed_at') }} as last_listed_on
    from {{ ref('public_jobs', 'public_jobs__stg_listings') }}
),

-- What the first build saw in a period counts from its beginning: a job that came back elsewhere has not moved.
spells as (
    select
        periods.*,
        {{- of('versions', short_columns() + pay_columns()) }}
        -- As all else of a spell, it stays what it was; the period has the latest one.
        coalesce(versions.public_id, periods.public_id) as public_id_then,
        versions.version,
        versions.updated_at as version_updated_at,
        case when versions.in_force_from > periods.known_by then versions.in_force_from else periods.shown_from end
            as from_at,
        {{ of_known('least', ['periods.closed_by', 'versions.in_force_until', end_of_time()]) }} as until_at,
        {{ together(dimensions(), 'versions') }} as place,
        {{ together(sent_pay(), 'versions') }} as sent_pay
    from (
        select *, coalesce(built_by, shown_from) as known_by
        from {{ ref('public_jobs', 'public_jobs__stg_periods') }}
    ) as periods
    left join {{ ref('public_jobs', 'public_jobs__stg_job_versions') }} as versions
        on
            periods.job_key = versions.job_key
            and periods.known_by < versions.in_force_until
            and coalesce(periods.closed_by, {{ end_of_time() }}) > versions.in_force_from
),

compared as (
    select
        *,
        row_number() over (partition by job_key order by from_at) as spell,
        lag(place) over {{ by_time }} <> place as has_moved,
        lag(sent_pay) over {{ by_time }} <> sent_pay as has_other_pay,
        lag(from_at) over {{ by_time }} is null as is_first_of_period,
        lead(place) over {{ by_time }} <> place as will_move,
        lead(sent_pay) over {{ by_time }} <> sent_pay as will_have_other_pay,
        lead(from_at) over {{ by_time }} is null as is_last_of_period
    from spells
)

select
    compared.organisation,
    compared.job_key || ' ' || cast(spell as {{ dbt.type_string() }}) as spell_key,
    compared.job_key,
    compared.id,
    compared.public_id_then as public_id,
    compared.spell,
    {{- of('compared', short_columns() + pay_columns()) }}
    locations.city,
    locations.country,
    locations.is_remote,
    compared.from_at,
    compared.until_at,
    {{ local_day('compared.from_at') }} as from_day,
    case
        when until_at = {{ end_of_time() }} then {{ never }}
        -- The closing of a job whose row was removed has the time of a build, which is after the listing.
        else least({{ local_day('compared.until_at') }}, listings.last_listed_on)
    end as until_day,
    case
        when not is_first_of_period then
            case when has_moved then 'moved' when has_other_pay then 'repriced' else 'edited' end
        when was_open_before then 'found'
        when period > 1 then 'reopened'
        else 'opened'
    end as began_as,
    case
        when until_at = {{ end_of_time() }} then 'open'
        when is_last_of_period then 'closed'
        when will_move then 'moved'
        when will_have_other_pay then 'repriced'
        else 'edited'
    end as ended_as,
    until_at = {{ end_of_time() }} as is_now,
    compared.period,
    {{- of('compared', ['was_open_before', 'opened_after', 'opened_on', 'open_since', 'shown_from', 'version']) }}
    {{ of_known('greatest', ['compared.updated_at', 'compared.version_updated_at']) }} as updated_at
from compared
inner join listings on compared.organisation = listings.organisation
left join {{ locations() }} as locations on compared.location = {{ text('locations.location') }}
