moment as materialized (
  select clock_timestamp() as time
), gate as materialized (
  select * from @schema.job_gate($1, hashtextextended('@channel.limit ' || $1, 0),
    coalesce($8, $10) is null and coalesce($5, $7) is not null, least($5, $7), $6, $12, $13)
), running as materialized (
  select key, count(*) as jobs from gate, unnest(gate.keys) key group by key
), bucket as materialized (
  select tat is not null as is_there, @schema.job_ahead(tat, time, $8, $9) as ahead from moment, (
    select max(tat) as tat from @schema.job_bucket
     where $8 is not null and name = $1 and not is_of_key and limit_key = '' and burst = $8 and gap_us = $9) read
), room as materialized (
  select case when may_claim then least($3, case when $5 is not null then greatest($5 - cardinality(keys), 0) end,
    @schema.job_tokens(ahead, $8, $9)) else 0 end as most, may_claim from bucket, (
    select keys, is_open and exists (select from @schema.job_worker where id = $2 and until > clock_timestamp())
        and not exists (select from @schema.job_pause pause where pause.name = $1 and pause.until > clock_timestamp()) as may_claim
      from gate) it
)