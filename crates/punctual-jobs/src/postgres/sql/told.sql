with told as (
  select * from unnest($2::int8[], $3::int4[]) as told(id, attempts)
), picked as (
  select j.id from @schema.job j join told on j.id = told.id and j.attempts = told.attempts
   where j.id = any($2) and untold and worker = $1 and j.id <> all($5)
   order by j.id limit $4 for update of j skip locked
), written as (
  update @schema.job j set untold = false, worker = null from picked where j.id = picked.id returning j.id
)
select told.id from told
 where exists (select from written where written.id = told.id)
    or not exists (select from @schema.job j
     where j.id = told.id and j.attempts = told.attempts and untold and worker = $1)
