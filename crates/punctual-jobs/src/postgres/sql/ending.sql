, gone as (
  delete from @schema.job j using ended, standing
   where j.id = standing.id and ended.id = j.id and ended.claim = j.claim and (how = 'ran' or standing.retired)
  returning ended.claim, ordering_key is not null or limit_claim is not null as wakes
), stored as (
  insert into @schema.job_result (job, value, until)
  select ended.id, value, clock_timestamp() + make_interval(secs => keep)
    from ended join gone on gone.claim = ended.claim where how = 'ran' and value is not null
  on conflict (job) do update set value = excluded.value, until = excluded.until
), kept as (
  update @schema.job j set claim = null, claimed_at = null,
    worker = case when discards then j.worker end, untold = discards,
    attempts = j.attempts - case when how in ('snoozed', 'freed') and not discards then 1 else 0 end,
    max_attempts = case when how = 'discarded' or j.cancelled then j.attempts else j.max_attempts end, cancelled = false,
    last_error = case when how = 'freed' and not discards then last_error
      when error = 'the answer to the claim was lost, and nothing has run' then coalesce(last_error, error) else coalesce(error, last_error) end,
    run_at = coalesce(now() + make_interval(secs => delay), run_at),
    due = due and how = 'freed'
    from ended, standing
   where j.id = standing.id and ended.id = j.id and ended.claim = j.claim and how <> 'ran' and not standing.retired
  returning ended.claim, ordering_key is not null or limit_claim is not null or how = 'freed' as wakes, j.untold as is_discarded
), told as (
  select @notify('') from (select wakes from gone union all select wakes from kept) all_of_them
   where wakes limit 1
)
select ended.claim, case
    when kept.is_discarded then 'discarded'
    when kept.claim is not null then 'waiting'
    when gone.claim is not null then 'gone'
    when exists (select 1 from @schema.job j where j.id = ended.id and j.claim = ended.claim) then 'held'
    else 'lost' end,
  (select count(*) from told)
  from ended left join gone on gone.claim = ended.claim left join kept on kept.claim = ended.claim
