with picked as (
  select w.id as name, hashtextextended(w.id, 0) as id
    from @schema.job_worker w join unnest($1::text[], $2::timestamptz[]) as dead(id, until) on dead.id = w.id and dead.until = w.until
   where w.until < now() - interval '1 hour' and hashtextextended(w.id, 0) <> all($4)
   order by w.id limit $3 for update of w skip locked
)
delete from @schema.job_worker w using picked where w.id = picked.name
