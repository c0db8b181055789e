with found as (
  select id, claim is not null as runs, attempts < max_attempts as is_left
    from @schema.job where id = $1 for update @nowait
), discarded as (
  update @schema.job j set max_attempts = j.attempts, last_error = coalesce(last_error, $2), cancelled = runs
    from found where j.id = found.id and (runs or is_left) returning ordering_key
), told as (
  select @notify('') from discarded where ordering_key is not null
)
select runs, (select count(*) from told) from found
