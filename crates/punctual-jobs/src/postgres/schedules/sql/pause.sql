with found as (
  select name from @schema.job_schedule where name = $1 and not removed for update @nowait
), done as (
  update @schema.job_schedule s set paused = $2,
    tick = case when s.paused and not $2 then greatest(s.tick, clock_timestamp()) else tick end,
    next_at = case when $2 then null when s.paused then clock_timestamp() else next_at end,
    revision = nextval('@schema.job_claim')
    from found where s.name = found.name returning 1
)
select @notify('schedule') from done
