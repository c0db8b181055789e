, asked as materialized (
  select key, priority, id as last_id, least(now() - interval '1 second', greatest(
      coalesce(timestamptz '2000-01-01 00:00:00+00' + micros * interval '1 microsecond', '-infinity'),
      now() - make_interval(secs => age))) as last
    from unnest($14::text[], $15::int4[], $16::int8[], $17::int8[], $18::float8[]) as asked(key, priority, micros, id, age)
), levels as materialized (
  select distinct priority from asked order by priority
), keys as materialized (
  select key from (values (-1::int2), (0::int2), (1::int2)) levels(priority) cross join lateral (
    with recursive walk(key) as (
      select min(limit_key) from @schema.job
       where name = $1 and priority = levels.priority and limit_key <> '' and due
         and ordering_key is null and claim is null and attempts < max_attempts
      union all
      select (select min(limit_key) from @schema.job
        where name = $1 and priority = levels.priority and limit_key <> '' and limit_key > walk.key and due
        and ordering_key is null and claim is null and attempts < max_attempts) from walk where walk.key is not null
    ) select key from walk where key is not null
  ) walk limit 3 * $20
), arrived as materialized (
  select distinct priority, key from levels cross join lateral (
    select limit_key as key from @schema.job
     where not $19 and name = $1 and job.priority = levels.priority and limit_key <> ''
       and run_at > now() - make_interval(secs => $21) and run_at <= now()
       and ordering_key is null and claim is null and attempts < max_attempts
     order by run_at limit 1000) new
), known as materialized (
  select key, priority, last, last_id from asked where key = '' or not $19
  union all
  select key, priority, '-infinity', 0 from arrived where not exists (
    select from asked where asked.key = arrived.key and asked.priority = arrived.priority)
), waiting as materialized (
  select key from known cross join lateral (
    select from @schema.job
     where name = $1 and job.priority = known.priority and limit_key = known.key and run_at <= now() and (run_at, id) > (last, last_id)
       and ordering_key is null and claim is null and attempts < max_attempts limit 1) job
), turns as materialized (
  select level.priority, turn.key, rest, coalesce(asked.last, '-infinity') as last, coalesce(asked.last_id, 0) as last_id,
      row_number() over () as turn
    from (
      select priority, is_round from levels, (values (false), (true)) round(is_round) order by priority, is_round
    ) level
    cross join lateral ((
      with recursive walk(key) as (
        select case when is_round then '' else (select min(limit_key) from @schema.job
          where name = $1 and priority = level.priority and limit_key <> '' and limit_key > $4 and due
          and ordering_key is null and claim is null and attempts < max_attempts) end where $19
        union all
        select case when is_round and next.key > $4 then null else next.key end
          from walk cross join lateral (select min(limit_key) from @schema.job
            where name = $1 and priority = level.priority and limit_key <> '' and limit_key > walk.key and due
            and ordering_key is null and claim is null and attempts < max_attempts) next(key) where walk.key is not null
      ) select key from walk where key is not null
      ) union all (
      select key from known where not $19 and known.priority = level.priority and (key <= $4) = is_round order by key
    )) turn
    left join asked on asked.key = turn.key and asked.priority = level.priority
    cross join lateral (
      select least($7 - coalesce((select jobs from running where running.key = turn.key), 0),
          @schema.job_tokens(@schema.job_ahead(tat, time, $10, $11), $10, $11)) as rest
        from moment, (select max(tat) as tat from @schema.job_bucket
          where $10 is not null and name = $1 and is_of_key and limit_key = turn.key and burst = $10 and gap_us = $11) read
    ) taken
    cross join lateral (
      select id from @schema.job
       where coalesce(rest > 0, true) and name = $1 and priority = level.priority and limit_key = turn.key and run_at <= now()
         and (run_at, id) > (coalesce(asked.last, '-infinity'), coalesce(asked.last_id, 0))
         and id <> all($22) and ordering_key is null and claim is null and attempts < max_attempts
         order by run_at, id limit 1 for update skip locked
    ) can_begin
   limit (select most from room)
), served as materialized (
  select turns.*, ((select most from room) - row_number() over (order by turn)) / count(*) over () + 1 as share
    from turns where priority = (select min(priority) from turns)
), picked as materialized (
  select id, key, turn, rest, row_number() over (partition by key order by run_at, id) as nth
    from served cross join lateral (
      select id, run_at from @schema.job
       where name = $1 and priority = served.priority and limit_key = served.key and run_at <= now()
         and (run_at, id) > (served.last, served.last_id) and id <> all($22)
         and ordering_key is null and claim is null and attempts < max_attempts
         order by run_at, id limit least(share, rest) for update skip locked
    ) job
), emptied as (
  select distinct key from known
   where $10 is null and (select count(*) from turns) < (select most from room) and not exists (select from turns where turns.key = known.key)
     and coalesce($7 > (select jobs from running where running.key = known.key), true)
)