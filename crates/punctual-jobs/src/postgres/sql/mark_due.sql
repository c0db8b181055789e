with begins as materialized (
  select case when $3::float8 is null then '-infinity' else now() - make_interval(secs => greatest($3, 1)) end as last
), picked as (
  select id from @schema.job
   where (ordering_key is not null or limit_key <> '') and claim is null and attempts < max_attempts and not due and run_at <= now()
     and run_at >= (select last from begins) and id <> all($5)
   order by run_at limit $2 for update skip locked
), marked as (
  update @schema.job set due = true where id in (select id from picked) returning limit_key
)
select count(*), coalesce(bool_or(limit_key <> ''), false) or exists (
    select from unnest($4::text[]) kind(name), (values (-1::int2), (0::int2), (1::int2)) level(priority) cross join lateral (
      select from @schema.job
       where name = kind.name and priority = level.priority and run_at >= (select last from begins) and run_at <= now()
         and limit_key <> '' and ordering_key is null and claim is null and attempts < max_attempts
       limit 1) keyed),
  array(select priority::int8 from (values (-1::int2), (1::int2)) level(priority)
   where exists (
     select from unnest($1::text[]) kind(name) cross join lateral (
       select from @schema.job
        where name = kind.name and priority = level.priority
          and ordering_key is null and claim is null and attempts < max_attempts
        limit 1) waits))
  from marked
