update @schema.job set last_error = $3 where id in (
  select id from @schema.job where id = $1 and claim = $2 and last_error is distinct from $3 for update skip locked)
