select coalesce(job.name, pause.name), coalesce(waiting, 0), coalesce(due, 0), coalesce(running, 0), coalesce(discarded, 0), latency,
  pause.name is not null, nullif(pause.until, 'infinity')
  from (
    select name, count(*) filter (where stage = 'w') as waiting, count(*) filter (where stage = 'w' and run_at <= time) as due,
        count(*) filter (where stage = 'r') as running, count(*) filter (where stage = 'd') as discarded,
        extract(epoch from max(time - run_at) filter (where stage = 'w' and run_at <= time and isfinite(run_at)))::float8 as latency
      from (
        select name, run_at, case when claim is not null then 'r' when attempts < max_attempts then 'w' else 'd' end as stage
          from @schema.job
      ) job, (select clock_timestamp() as time offset 0) now
     group by name
  ) job
  full join (select * from @schema.job_pause where until > clock_timestamp()) pause using (name)
 order by coalesce(job.name, pause.name) collate "C"
