with found as (
  select name, declared from @schema.job_schedule where name = $1 and not removed for update @nowait
), gone as (
  delete from @schema.job_schedule s using found where s.name = found.name and not found.declared
), hidden as (
  update @schema.job_schedule s set removed = true, edited = true, paused = false, next_at = null,
    revision = nextval('@schema.job_claim')
    from found where s.name = found.name and found.declared
)
select @notify('schedule') from found
