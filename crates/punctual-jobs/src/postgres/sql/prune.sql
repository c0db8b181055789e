with turn as materialized (
  select pg_try_advisory_xact_lock(hashtextextended('@channel.history', 0)) as is_ours
), first as materialized (
  select id, ended from @schema.job_run, turn where is_ours and id <> all($3) order by id limit $2
), picked as (
  select id from @schema.job_run
   where id in (select id from first where ended < now() - make_interval(secs => $1)) for update skip locked
), gone as (
  delete from @schema.job_run r using picked where r.id = picked.id returning 1
)
select count(*) from gone
