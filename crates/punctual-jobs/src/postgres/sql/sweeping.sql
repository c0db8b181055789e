, swept as (
  update @schema.job j set claim = null, worker = null, claimed_at = null, last_error = $1, due = false,
    cancelled = false, untold = j.attempts >= j.max_attempts,
    run_at = now() + make_interval(secs => exp(least(j.attempts, 10)))
    from picked where j.id = picked.id and not picked.retired returning j.run_at, j.attempts < j.max_attempts as waits
), told as (
  select @notify('') from picked where wakes limit 1
), coming as (
  select @notify('at ' || (extract(epoch from min(run_at)) * 1000000)::int8) from swept where waits having count(*) > 0
)
select name, count(*), (select count(*) from told) + (select count(*) from coming) from picked group by name
