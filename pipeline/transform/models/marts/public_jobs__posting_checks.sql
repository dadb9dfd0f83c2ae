-- By way of text, because the types of a seed in your own project may be any.
with rules as (
    select
        {{ text('rule') }} as rule,
        lower({{ text('place') }}) as place,
        cast({{ text('valid_from') }} as date) as valid_from,
        cast({{ text('pay_required') }} as boolean) as pay_required,
        cast({{ text('widest_range') }} as {{ double() }}) as widest_range,
        upper({{ text('currency') }}) as currency,
        case coalesce(lower({{ text('range_period') }}), 'year')
            {%- for period, in_a_year in var('periods_in_a_year').items() %}
            when '{{ period | lower }}' then {{ in_a_year }}
            {%- endfor %}
        end as periods_in_a_year
    from {{ posting_rules() }}
),

-- To a hundredth, because an amount for an hour makes a year with a remainder that no posting has.
applied as (
    select
        jobs.*,
        rules.rule,
        rules.pay_required,
        rules.widest_range,
        round(100 * (jobs.annual_high - jobs.annual_low) / rules.periods_in_a_year) / 100
            as range_width,
        jobs.min_salary > 0 and jobs.max_salary > 0 as has_both_ends,
        rules.currency is null or coalesce(upper(jobs.currency) = rules.currency, false)
            as has_currency
    from {{ ref('public_jobs', 'public_jobs__jobs_ever') }} as jobs
    inner join rules
        on
            (
                coalesce(lower(jobs.location), '') like rules.place
                or lower(jobs.city) like rules.place
                or lower(jobs.country) like rules.place
            )
            and (
                rules.valid_from is null
                or rules.valid_from <= {{ local_day('jobs.last_seen_at') }}
            )
            and jobs.is_open
),

findings as (
    {%- for finding, condition in {
        'no pay': 'pay_required and not has_salary',
        'upper below lower': 'has_both_ends and min_salary > max_salary',
        'period unknown': 'has_salary and (annual_middle is null or (widest_range is not null and range_width is null))',
        'one end': 'has_salary and widest_range is not null and not coalesce(has_both_ends, false)',
        'other currency': 'has_salary and widest_range is not null and not has_currency',
        'too wide': 'range_width > widest_range and has_currency',
    }.items() %}
    select applied.*, cast('{{ finding }}' as {{ dbt.type_string() }}) as finding
    from applied
    where {{ condition }}
    {% if not loop.last %}union all{% endif %}
    {%- endfor %}
)

-- Several rows of the seed may name a place of one job.
select distinct
    organisation,
    job_key,
    id,
    public_id,
    job_title,
    department,
    location,
    city,
    country,
    rule,
    finding,
    pay,
    range_width,
    widest_range,
    shown_from,
    job_url
from findings
