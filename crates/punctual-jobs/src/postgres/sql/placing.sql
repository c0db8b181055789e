, held as materialized (
  select is_of_key, limit_key, tat from @schema.job_bucket
   where name = $1 and exists (select from picked)
     and (not is_of_key and limit_key = '' and burst = $8 and gap_us = $9
       or is_of_key and limit_key in (select key from picked) and burst = $10 and gap_us = $11)
   order by is_of_key, limit_key for update skip locked
), key_bucket as materialized (
  select key, is_there, ahead, case when not is_there or tat is not null then @schema.job_tokens(ahead, $10, $11) when $10 is not null then 0 end as tokens
    from (select key, tat, is_there, @schema.job_ahead(tat, time, $10, $11) as ahead
      from moment, (select key, (select tat from held where is_of_key and limit_key = key) as tat, exists (
        select from @schema.job_bucket
         where $10 is not null and name = $1 and is_of_key and limit_key = key and burst = $10 and gap_us = $11) as is_there
      from (select distinct key from picked) distinct_keys offset 0) it) now
), kind_bucket as materialized (
  select is_there, ahead, case when not is_there or tat is not null then @schema.job_tokens(ahead, $8, $9) when $8 is not null then 0 end as tokens
    from (select is_there, tat, @schema.job_ahead(tat, time, $8, $9) as ahead
      from moment, (select is_there, (select tat from held where not is_of_key) as tat from bucket offset 0) it) now
), numbered as materialized (
  select id, key, turn, row_number() over (order by nth, turn) as place
    from picked join key_bucket using (key) where coalesce(nth <= rest, true) and coalesce(nth <= tokens, true)
), placed as materialized (
  select numbered.*, nextval('@schema.job_claim') as claim from numbered
   where place <= least((select most from room), (select tokens from kind_bucket))
), spent as materialized (
  select true as is_of_key, key, $10::int8 as burst, $11::int8 as gap, is_there, ahead + $11 * count(*) as ahead
    from placed join key_bucket using (key) where $10 is not null group by key, is_there, ahead
  union all
  select false, '', $8, $9, is_there, ahead + $9 * count(*) from placed, kind_bucket
   where $8 is not null group by is_there, ahead
), kept as (
  update @schema.job_bucket b set tat = (select time from moment) + spent.ahead * interval '1 microsecond' from spent
   where b.name = $1 and b.is_of_key = spent.is_of_key and b.limit_key = spent.key and b.burst = spent.burst
     and b.gap_us = spent.gap and spent.is_there
  returning b.is_of_key, b.limit_key as key
), made as (
  insert into @schema.job_bucket (name, is_of_key, limit_key, burst, gap_us, tat)
  select $1, is_of_key, key, burst, gap, (select time from moment) + ahead * interval '1 microsecond'
    from spent where not is_there order by is_of_key, key
  on conflict do nothing returning is_of_key, limit_key as key
), paid as materialized (
  select * from kept union all select * from made
), claimed as (
  update @schema.job j set claim = placed.claim, limit_claim = case when coalesce($5, $7) is not null then placed.claim end,
    at_once = $5, key_at_once = $7, worker = $2, claimed_at = (select time from moment), attempts = attempts + 1
    from placed where j.id = placed.id
     and ($8 is null or exists (select from paid where not is_of_key))
     and ($10 is null or exists (select from paid where is_of_key and paid.key = placed.key))
  returning j.id, j.claim, name, payload, attempts, max_attempts, j.key, ordering_key, tick, traceparent, limit_key, turn, priority::int4,
    case when isfinite(j.run_at) then round(extract(epoch from j.run_at - timestamptz '2000-01-01 00:00:00+00') * 1000000)::int8 end as moment
)
