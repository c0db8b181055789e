with found as (
  select id, claim is not null as runs from @schema.job
   where key = $1 and (claim is not null or attempts < max_attempts) for update @nowait
), removed as (
  delete from @schema.job j using found where j.id = found.id and not runs returning ordering_key
), noted as (
  update @schema.job j set key = null, retired = true, cancelled = true
    from found where j.id = found.id and runs
)
select id, runs, (select @notify('') from removed where ordering_key is not null) from found
