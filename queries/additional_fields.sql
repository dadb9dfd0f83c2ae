-- Which fields does the API send that have no column of their own, and what is in them?
-- Values that did not fit their column are here too. A field that is declared in meltano.yml
-- becomes a column, see docs/sql.md. On DuckDB this needs 1.3 or later.
select
    fields.key as field,
    count(*) as roles,
    (array_agg(fields.value order by details.public_id))[1] as example
from public_jobs.job_details as details
join public_jobs.job_publications using (id)
cross join json_each(details.additional_fields::json) as fields
where unpublished_at is null
  and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
group by fields.key
order by roles desc, field;
