-- Which fields have no column of their own, and what is in them?
--
-- For DuckDB. Fields that the API does not document, and values that did not fit their column.
-- Any of them becomes a column by being declared in meltano.yml, see the README.
with fields as (
    select public_id, additional_fields, unnest(json_keys(additional_fields)) as field
    from public_jobs.job_details
    where is_published
)

select
    field,
    count(*) as roles,
    arg_min(additional_fields -> field, public_id) as example
from fields
group by field
order by roles desc, field;
