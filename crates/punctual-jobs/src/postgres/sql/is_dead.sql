not exists (
     select 1 from @schema.job_worker w where w.id = j.worker and not exists (
       select 1 from unnest($2::text[], $3::timestamptz[]) as dead(id, until) where dead.id = w.id and dead.until = w.until))
