, walk(key) as (
  select min(ordering_key) from @schema.job
   where ordering_key > $4 and name = $1 and due and claim is null and attempts < max_attempts
  union all
  select (select min(ordering_key) from @schema.job
    where ordering_key > walk.key and name = $1 and due and claim is null and attempts < max_attempts)
    from walk where key is not null
), first as (
  select job.id, rest from walk cross join lateral (
    select id, name, run_at, limit_key from @schema.job
     where ordering_key = walk.key and claim is null and attempts < max_attempts
     order by run_at, id limit 1) job
   cross join lateral (
      select least($7 - coalesce((select jobs from running where running.key = job.limit_key), 0),
          @schema.job_tokens(@schema.job_ahead(tat, time, $10, $11), $10, $11)) as rest
        from moment, (select max(tat) as tat from @schema.job_bucket
          where $10 is not null and name = $1 and is_of_key and limit_key = job.limit_key and burst = $10 and gap_us = $11) read
    ) taken
   cross join lateral (
      select from @schema.job j
       where j.id = job.id and job.name = $1 and job.run_at <= now() and job.id <> all($14) and coalesce(rest > 0, true)
         and not exists (select from @schema.job o where o.ordering_key = walk.key and o.claim is not null)
         and claim is null and attempts < max_attempts and j.run_at <= now()
       for update skip locked) locked
   limit (select most from room)
), picked as materialized (
  select id, limit_key as key, 1::int8 as turn, rest, row_number() over (partition by limit_key order by ordering_key) as nth
    from first cross join lateral (
      select limit_key, ordering_key from @schema.job
       where job.id = first.id and claim is null and attempts < max_attempts and run_at <= now()
       for update skip locked) job
)