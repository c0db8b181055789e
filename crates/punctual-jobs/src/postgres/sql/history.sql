select id, job, name, key, schedule, tick, attempt, machine, began, ended, outcome, error from @schema.job_run
 where ($1 is null or job = $1) and ($2 is null or name = $2) and ($3 is null or schedule = $3)
   and ($4 is null or id < $4)
 order by id desc limit $5
