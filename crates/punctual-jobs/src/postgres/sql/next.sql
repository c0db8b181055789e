with since as materialized (
  select coalesce(timestamptz 'epoch' + $2::int8 * interval '1 microsecond', now()) as at
)
select (extract(epoch from min(run_at)) * 1000000)::int8, (extract(epoch from now()) * 1000000)::int8 from (
  select (select run_at from @schema.job
     where limit_key = '' and ordering_key is null and claim is null and attempts < max_attempts
       and name = kind.name and priority = level.priority and run_at > (select at from since) and run_at < now() + interval '1 day'
     order by run_at limit 1) as run_at
    from unnest($1::text[]) kind(name), (values (-1::int2), (0::int2), (1::int2)) level(priority)
  union all (
  select run_at from @schema.job
   where (ordering_key is not null or limit_key <> '') and claim is null and attempts < max_attempts and not due
     and run_at > (select at from since) and run_at < now() + interval '1 day' order by run_at limit 1)
) coming
