with moment as materialized (
  select clock_timestamp() as time
), asked as materialized (
  select asked.*, coalesce(at, time + make_interval(secs => delay)) as run_at, time
    from moment, unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::float8[], $6::int4[], $7::text[], $8::int2[],
      $9::text[], $10::bool[], $14::text[]) with ordinality
      as asked(name, payload, ordering_key, at, delay, max_attempts, key, priority, limit_key, is_unique, traceparent, place)
), runs as (
  select id from @schema.job where key = any($12) and claim is not null for update
), retired as (
  update @schema.job j set key = null, retired = true from runs where j.id = runs.id returning 1
), sent as (
  insert into @schema.job as j (name, payload, ordering_key, run_at, due, max_attempts, key, priority, limit_key, traceparent)
  select name, payload, ordering_key, run_at, run_at <= time, max_attempts, key, priority, limit_key, traceparent
    from asked, (select count(*) from retired) before_the_keys_are_free
   where not is_unique order by place
  on conflict (key) where key is not null and (claim is not null or attempts < max_attempts) do update set
    name = excluded.name, payload = excluded.payload, ordering_key = excluded.ordering_key,
    run_at = case when excluded.key = any($13) and j.attempts = 0 then j.run_at else excluded.run_at end,
    due = case when excluded.key = any($13) and j.attempts = 0 then j.due else excluded.due end,
    attempts = 0, max_attempts = excluded.max_attempts, last_error = null, priority = excluded.priority,
    limit_key = excluded.limit_key, traceparent = excluded.traceparent
   where j.claim is null
  returning id, key, due, run_at
), made as (
  insert into @schema.job (name, payload, ordering_key, run_at, due, max_attempts, key, priority, limit_key, traceparent)
  select name, payload, ordering_key, run_at, run_at <= time, max_attempts, key, priority, limit_key, traceparent
    from asked where is_unique order by place
  on conflict (key) where key is not null and (claim is not null or attempts < max_attempts) do nothing
  returning id, key, due, run_at
), stored as materialized (
  select due, run_at from sent union all select due, run_at from made
), told as (
  select @notify('') from stored where due limit 1
), coming as (
  select @notify('at ' || (extract(epoch from min(run_at)) * 1000000)::int8)
    from stored where not due and run_at < clock_timestamp() + @told_ahead having count(*) > 0
), answered as materialized (
  select id, key, false as was_skipped from sent
  union all
  select id, key, false from made
  union all
  select id, key, true from @schema.job j
   where key = any($11) and (claim is not null or attempts < max_attempts) and not exists (select from made where made.key = j.key)
), checked as materialized (
  select 1 / case when (select count(*) from answered) = cardinality($1) or cardinality($1) = 1 then 1 else 0 end as is_all, (select count(*) from told) + (select count(*) from coming) as told
)
select id, key, was_skipped, is_all, told from checked left join answered on true
