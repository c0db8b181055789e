select j.claim is not null, j.attempts, j.max_attempts, j.last_error,
  (select value from @schema.job_result where job = $1 and until > clock_timestamp())
  from (select) one left join @schema.job j on j.id = $1
