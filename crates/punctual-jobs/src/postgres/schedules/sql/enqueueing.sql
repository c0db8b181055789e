outstanding as materialized (
  select j.id, claim is not null as runs from @schema.job j, held
   where j.schedule = held.name and (claim is not null or attempts < j.max_attempts)
), free as materialized (
  select id, claim is not null as runs, run_at from @schema.job
   where id in (select id from outstanding) and exists (select from held where overlap in ('replace', 'queue'))
   for update @skip_locked
), asked as materialized (
  select name, overlap, overlap_most, kind, payload, max_attempts, priority, limit_key,
      coalesce(ordering_key, case when overlap <> 'allow' then 'every ' || name end) collate "C" as ordering_key, waits
    from held
   where overlap <> 'replace' or (select count(*) from free) = (select count(*) from outstanding)
), room as materialized (
  select case
      when overlap = 'allow' then overlap_most - (select count(*) from outstanding)
      when overlap = 'replace' and not waits then 1
      when overlap = 'queue' then 1 - least((select count(*) from outstanding where not runs), 1)
      else 1 - least((select count(*) from outstanding), 1) end as room
    from asked
), chosen as materialized (
  select tick, number from wanted, room where number <= room
), removed as (
  delete from @schema.job j using free, asked
   where j.id = free.id and not free.runs and overlap = 'replace' and exists (select from chosen) and not waits
), cancelled as (
  update @schema.job j set key = null, retired = true, cancelled = true from free, asked
   where j.id = free.id and free.runs and overlap = 'replace' and exists (select from chosen) and not waits
  returning j.id
), enqueued as (
  insert into @schema.job (name, payload, ordering_key, schedule, tick, run_at, due, max_attempts, priority, limit_key)
  select kind, payload, ordering_key, asked.name, chosen.tick, clock_timestamp(), true, max_attempts, priority, limit_key
    from asked, chosen order by number
  returning id
), brought_forward as (
  update @schema.job j set run_at = least(j.run_at, clock_timestamp()), due = true, name = asked.kind,
      payload = asked.payload, max_attempts = greatest(asked.max_attempts, j.attempts + 1),
      ordering_key = asked.ordering_key, priority = asked.priority, limit_key = asked.limit_key
    from free, asked
   where j.id = free.id and not free.runs and overlap = 'queue' and not waits and exists (select from wanted)
     and (free.run_at > clock_timestamp() or (j.name, j.payload, j.ordering_key, j.priority, j.limit_key)
         is distinct from (asked.kind, asked.payload, asked.ordering_key, asked.priority, asked.limit_key))
  returning j.id
)
