with recursive keys(name, key) as (
  select kind.name, (select min(ordering_key) from @schema.job
    where ordering_key > $4 and name = kind.name and due and claim is null and attempts < max_attempts)
    from unnest($1::text[]) as kind(name)
   where not exists (select from @schema.job_pause pause where pause.name = kind.name and pause.until > clock_timestamp())
  union all
  select keys.name, (select min(ordering_key) from @schema.job
    where ordering_key > keys.key and name = keys.name and due and claim is null and attempts < max_attempts)
    from keys where key is not null
), first as (
  select job.id from keys cross join lateral (
    select id, name, run_at from @schema.job
     where ordering_key = keys.key and claim is null and attempts < max_attempts
     order by run_at, id limit 1) job
  cross join lateral (
    select from @schema.job j
     where j.id = job.id and job.name = keys.name and job.run_at <= now() and job.id <> all($5)
       and not exists (select 1 from @schema.job o where o.ordering_key = keys.key and o.claim is not null)
       and exists (select 1 from @schema.job_worker where id = $2 and until > clock_timestamp())
       and claim is null and attempts < max_attempts and j.run_at <= now()
     for update skip locked) locked
   limit $3
), picked as (
  select id from @schema.job
   where id in (select id from first) and claim is null and attempts < max_attempts and run_at <= now()
   for update skip locked
)
update @schema.job j set
  claim = nextval('@schema.job_claim'), worker = $2, claimed_at = clock_timestamp(), attempts = attempts + 1
  from picked where j.id = picked.id
returning j.id, claim, name, payload, attempts, max_attempts, key, ordering_key, tick, traceparent
