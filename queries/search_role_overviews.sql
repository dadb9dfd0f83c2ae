-- Which roles speak of both the team and testing in their overview?
--
-- Change: the list of words. All must occur, in capitals or not, also within longer words:
-- 'test' finds "tests" and "latest". Nothing in them is special: '%' finds a percent sign.
-- excerpt begins 30 characters before the first word of the list.
with words(place, word) as (
    values (1, 'team'), (2, 'test')
),

overviews as (
    select
        details.*,
        strpos(lower(details.role_overview), lower(words.word)) as found_at
    from public_jobs.job_details as details
    cross join words
    where details.is_published and words.place = 1
)

select
    job_title,
    location,
    substr(role_overview, greatest(found_at - 30, 1), 80) as excerpt,
    public_id,
    job_url
from overviews
where
    role_overview is not null
    and not exists (
        select 1
        from words
        where strpos(lower(overviews.role_overview), lower(words.word)) = 0
    )
order by job_title nulls last, public_id;
