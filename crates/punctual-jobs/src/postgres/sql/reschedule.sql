with moment as materialized (
  select coalesce($2, clock_timestamp() + make_interval(secs => $3)) as run_at, clock_timestamp() as time
), found as (
  select id, claim is not null as runs from @schema.job
   where key = $1 and (claim is not null or attempts < max_attempts) for update @nowait
), moved as (
  update @schema.job j set run_at = moment.run_at, due = moment.run_at <= time
    from found, moment where j.id = found.id and not runs returning due, j.run_at
)
select exists (select 1 from moved), (
  select case
      when due then @notify('')
      when run_at < clock_timestamp() + @told_ahead
        then @notify('at ' || (extract(epoch from run_at) * 1000000)::int8) end
    from moved
) from found
