select id, name, case when $9 then payload end, key, ordering_key, schedule, tick,
  case when claim is not null then 'running' when attempts < max_attempts then 'waiting' else 'discarded' end,
  run_at, attempts, max_attempts, case when claim is not null then split_part(worker, ' ', 1) end, claimed_at, last_error, priority,
  nullif(limit_key, ''),
  case when claim is not null or attempts >= max_attempts or run_at > clock_timestamp() then null
    when ordering_key is not null and exists (
      select from @schema.job o where o.ordering_key = job.ordering_key and (o.claim is not null
         or o.claim is null and o.attempts < o.max_attempts and (o.run_at, o.id) < (job.run_at, job.id))) then 'ordering key'
    when (select count(*) >= coalesce(of_key, max(o.key_at_once)) from @schema.job o
       where o.name = job.name and o.claim = o.limit_claim and o.limit_key = job.limit_key)
      or exists (select from @schema.job_bucket b
       where b.name = job.name and b.is_of_key and b.limit_key = job.limit_key
         and b.tat > clock_timestamp() + (b.burst - 1) * b.gap_us * interval '1 microsecond') then 'limit of key'
    when (select count(*) >= coalesce(of_kind, max(o.at_once)) from @schema.job o
       where o.name = job.name and o.claim = o.limit_claim)
      or exists (select from @schema.job_bucket b
       where b.name = job.name and not b.is_of_key
         and b.tat > clock_timestamp() + (b.burst - 1) * b.gap_us * interval '1 microsecond') then 'limit' end,
  claim is null and attempts < max_attempts
    and exists (select from @schema.job_pause pause where pause.name = job.name and pause.until > clock_timestamp())
  from (
    select * from @schema.job
     where id > $6 and ($1 is null
         or $1 = 'running' and claim is not null
         or $1 = 'waiting' and claim is null and attempts < max_attempts
         or $1 = 'discarded' and claim is null and attempts >= max_attempts)
       and ($2 is null or name = $2) and ($3 is null or key = $3)
       and ($4 is null or schedule = $4) and ($5 is null or ordering_key = $5)
       and ($8 is null or limit_key = $8 and limit_key <> '')
       and (not $13 or claim is null and attempts < max_attempts
         and exists (select from @schema.job_pause pause where pause.name = job.name and pause.until > clock_timestamp()))
     order by id limit $7
  ) job
  left join unnest($10::text[], $11::int4[], $12::int4[]) as limits(kind, of_kind, of_key) on kind = name
 order by id
