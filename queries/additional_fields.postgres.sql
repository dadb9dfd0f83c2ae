-- Which fields have no column of their own, and what is in them?
--
-- For PostgreSQL. Fields that the API does not document, and values that did not fit their column.
-- Any of them becomes a column by being declared in meltano.yml, see the README.
select
    fields.field,
    count(*) as roles,
    (array_agg(fields.value order by details.public_id))[1] as example
from public_jobs.job_details as details,
    jsonb_each(details.additional_fields) as fields(field, value)
where details.is_published
group by fields.field
order by roles desc, fields.field;
