with picked as (
  select job as id from @schema.job_result where until < clock_timestamp() and job <> all($2)
   order by until limit $1 for update skip locked
), gone as (
  delete from @schema.job_result r using picked where r.job = picked.id returning 1
)
select count(*) from gone
