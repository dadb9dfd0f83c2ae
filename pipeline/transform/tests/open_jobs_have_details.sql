-- Every published job has its detail. One whose detail can't be read has none either, so this warns.
{{ config(severity='warn') }}

select publications.job_key
from {{ ref('public_jobs', 'public_jobs__stg_publications') }} as publications
left join {{ ref('public_jobs', 'public_jobs__published_job_details') }} as details using (job_key)
where publications.is_published and details.job_key is null
