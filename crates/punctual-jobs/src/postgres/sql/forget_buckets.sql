with picked as (
  select name, is_of_key, limit_key, burst, gap_us, hashtextextended(ctid::text, 0) as id from @schema.job_bucket
   where tat < now() - interval '1 minute' and hashtextextended(ctid::text, 0) <> all($2) limit $1 for update skip locked
)
delete from @schema.job_bucket b using picked
 where (b.name, b.is_of_key, b.limit_key, b.burst, b.gap_us)
     = (picked.name, picked.is_of_key, picked.limit_key, picked.burst, picked.gap_us)
