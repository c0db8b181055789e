with told as (
  select * from unnest($2::int8[], $3::int4[]) as told(id, attempts)
), free as (
  select j.id from @schema.job j join told on j.id = told.id and j.attempts = told.attempts
   where j.id = any($2) and untold and worker = $1 for update of j skip locked
), written as (
  update @schema.job j set untold = false, worker = null from free where j.id = free.id returning j.id
)
select told.id from told
 where exists (select from written where written.id = told.id)
    or not exists (select from @schema.job j
     where j.id = told.id and j.attempts = told.attempts and untold and worker = $1)
