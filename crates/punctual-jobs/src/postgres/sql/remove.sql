with found as (
  select id, claim is not null as runs from @schema.job where id = $1 for update @nowait
), removed as (
  delete from @schema.job j using found where j.id = found.id and not runs returning ordering_key
), told as (
  select @notify('') from removed where ordering_key is not null
)
select runs, (select count(*) from told) from found
