with moment as materialized (
  select clock_timestamp() + interval '50 milliseconds' as time
), asked as materialized (
  select max(tick) filter (where tick <= time) as newest,
    extract(epoch from min(tick) filter (where tick > time) - min(time))::float8 as early
    from moment, unnest($2::timestamptz[]) tick
), ahead as materialized (
  select extract(epoch from tick - time)::float8 as ahead
    from moment, @schema.job_tick where name = $1 and tick > time + interval '1 minute'
), taken as (
  insert into @schema.job_tick as t (name, tick) select $1, newest from asked where newest is not null
  on conflict (name) do update set tick = excluded.tick
   where t.tick < excluded.tick or t.tick > (select time from moment) + interval '1 minute'
  returning 1
), waiting as materialized (
  select id from @schema.job, taken
   where ordering_key = $5 and name = $3 and claim is null and attempts < max_attempts
), put_off as (
  select id from @schema.job where id in (select id from waiting) and claim is null and run_at > clock_timestamp()
   for update skip locked
), brought_forward as (
  update @schema.job j set run_at = clock_timestamp(), due = true from put_off where j.id = put_off.id returning 1
), enqueued as (
  insert into @schema.job (name, payload, ordering_key, tick, run_at, due, max_attempts)
  select $3, $4, $5, newest, clock_timestamp(), true, $6 from taken, asked where not exists (select from waiting)
  returning 1
), told as (
  select @notify('')
    from (select from enqueued union all select from brought_forward) due limit 1
)
select newest, exists (select from taken), exists (select from enqueued), early,
  (select ahead from ahead where newest is not null), (select count(*) from told) from asked
