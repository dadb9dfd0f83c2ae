with versions as (
    select organisation, job_key, additional_fields, listed_at, dbt_valid_to
    from {{ ref('public_jobs', 'public_jobs__stg_job_history') }}
    where additional_fields is not null
    union all
    select organisation, job_key, additional_fields, listed_at, dbt_valid_to
    from {{ ref('public_jobs', 'public_jobs__stg_job_detail_history') }}
    where additional_fields is not null
),

named as (
    select versions.*, {{ json_names('additional_fields') }} as field
    from versions
    {{ json_names_rows('additional_fields') }}
),

valued as (
    select *, {{ json_value('additional_fields', 'field') }} as value
    from named
),

typed as (
    select
        *,
        {{ json_type('value') }} as type,
        -- Most versions are old, and their texts are long.
        case
            when dbt_valid_to is null
                then coalesce({{ json_as_text('value') }}, '') not in ('', '[]', '{}')
        end as is_filled_now
    from valued
),

open_jobs as (
    select organisation, count(*) as jobs
    from {{ ref('public_jobs', 'public_jobs__stg_publications') }}
    where is_published
    group by organisation
),

fields as (
    select
        organisation,
        field,
        {{ dbt.listagg('distinct type', "', '", 'order by type') }} as types,
        count(distinct case when is_filled_now then job_key end) as filled_jobs,
        min(listed_at) as first_seen_at,
        max(case when dbt_valid_to is null then 1 else 0 end) = 1 as is_sent
    from typed
    group by organisation, field
)

select
    fields.organisation,
    fields.field,
    fields.types,
    fields.filled_jobs,
    coalesce(
        cast(round(cast(fields.filled_jobs as numeric(18, 6)) / open_jobs.jobs, 4) as {{ double() }}), 0
    )
        as share_filled,
    fields.first_seen_at,
    fields.is_sent
from fields
left join open_jobs using (organisation)
