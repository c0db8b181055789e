with found as (
  select id, key, claim is not null as runs, attempts >= max_attempts as is_discarded
    from @schema.job where id = $1 for update @nowait
), judged as materialized (
  select id, runs, is_discarded and not runs and exists (
    select from @schema.job o where o.key = found.key and o.id <> found.id
       and (o.claim is not null or o.attempts < o.max_attempts)) as is_taken from found
), moved as (
  update @schema.job j set run_at = least(j.run_at, clock_timestamp()), due = true, untold = false, worker = null,
    cancelled = false, max_attempts = greatest(j.max_attempts, j.attempts + 1)
    from judged where j.id = judged.id and not runs and not is_taken returning 1
), told as (
  select @notify('') from moved
)
select runs, is_taken, (select count(*) from told) from judged
