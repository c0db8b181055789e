with turn as materialized (
  select pg_try_advisory_xact_lock(hashtextextended('@channel.history', 0)) as is_ours
), first as materialized (
  select id, ended from @schema.job_run, turn where is_ours order by id limit 1000
), old as (
  select id from @schema.job_run
   where id in (select id from first where ended < now() - make_interval(secs => $1)) for update skip locked
), gone as (
  delete from @schema.job_run r using old where r.id = old.id returning 1
)
select count(*) from gone
