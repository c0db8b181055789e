//! The statements.
//!
//! Each statement is sent alone, in one flight and without a name, and commits by itself. So nothing is kept
//! in the session, and the connection may lead through a pooler that changes backends between any two of them.
//!
//! # No statement waits for a row
//!
//! One connection carries the statements of all names of a process, one after the other. If one of them
//! waited for a row's lock, the renewals behind it would wait as well, and leases would end that have
//! nothing to do with that row. So each takes its row by `skip locked`, and an answer without a row means:
//! look again soon. A row is locked for long by a program that calls `guard` or `finish` in a transaction of its
//! own.
//!
//! # Three strengths of locks
//!
//! | statement | lock of the row | waits for, or is refused by |
//! |---|---|---|
//! | take | `for update` | all others |
//! | renew, leave, finish, set right | `for no key update` | each other and take |
//! | guard | `for key share` | take |
//!
//! So a transaction that is guarded keeps others from taking over until it ends, and does not keep its own
//! lease from being renewed.
//!
//! # Fencing tokens
//!
//! All names of a schema draw them from one sequence, so that a name whose row was deleted goes on with a larger
//! token, and a guard with an old one does not pass. A claim draws its token while the row is locked, so those of a
//! name rise in the order of its claims.
//!
//! A claim of a row whose run has not ended *overtakes* that run, and says so in the row. So a holder that finds
//! another's token there learns whether its own run was ended before, by `finish` in a transaction of its body, or
//! whether it has lost its lease.
//!
//! # Commits wait for the disk
//!
//! The commit of each statement that writes waits for the disk, whatever the role has set: `@durable` in
//! [`name_in`](crate::server::schema::Schema::name_in). If a crash took back a claim, its token would be given
//! twice. If it took back a renewal, another replica would begin beside the holder; if an end, the tick would run again.
//!
//! # Time
//!
//! All times are `clock_timestamp()`: what the clock shows when the row is there to be written. `now()` is the
//! beginning of the transaction, which is before any wait for a lock on the *table*.

/// `$1` name. One row, always: the clock, and the row of the name or nulls.
pub(super) const LOOK: &str = "\
select clock_timestamp(), g.tick, g.done, g.fence, g.lease_until, g.holder, extract(epoch from g.lease)::float8
  from (select) one left join @schema.gate g on g.name = $1";

/// `$1` name, `$2` tick, `$3` holder, `$4` lease. The first claim of a name.
pub(super) const INSERT: &str = "\
insert into @schema.gate (name, tick, done, fence, overtaken, holder, lease, lease_until)
select $1, $2, false, fence, fence - 1, $3, make_interval(secs => $4), clock_timestamp() + make_interval(secs => $4)
  from nextval('@schema.gate_fence') fence where @durable
on conflict (name) do nothing returning fence";

/// `$1` name, `$2` tick, `$3` holder, `$4` lease, and the row that was seen: `$5` fencing token, `$6` done,
/// `$7` end of the lease.
pub(super) const TAKE: &str = "\
update @schema.gate g
   set tick = $2, done = false, fence = nextval('@schema.gate_fence'), holder = $3,
       overtaken = case when g.done then g.overtaken else g.fence end,
       lease = make_interval(secs => $4), lease_until = clock_timestamp() + make_interval(secs => $4)
  from (select name from @schema.gate
         where name = $1 and fence = $5 and done = $6 and lease_until = $7 and @durable
           for update skip locked) seen
 where g.name = seen.name returning g.fence";

/// `$1` name, `$2` fencing token, `$3` lease.
pub(super) const RENEW: &str = "\
update @schema.gate g set lease = make_interval(secs => $3), lease_until = clock_timestamp() + make_interval(secs => $3)
  from (select name from @schema.gate where name = $1 and fence = $2 and not done and @durable
           for no key update skip locked) seen
 where g.name = seen.name returning g.fence";

/// `$1` name, `$2` fencing token. The end of the lease is that of the run, from which a delay is counted. No row if
/// `finish` has ended the run.
pub(super) const LEAVE: &str = "\
update @schema.gate g set done = true, lease_until = clock_timestamp()
  from (select name from @schema.gate where name = $1 and fence = $2 and not done and @durable
           for no key update skip locked) seen
 where g.name = seen.name returning g.fence";

/// `$1` name, `$2` fencing token. Of a tick that did not run: afterwards it is as if the one before had been the last.
pub(super) const GIVE_BACK: &str = "\
update @schema.gate g set done = true, lease_until = to_timestamp(0),
       tick = g.tick - interval '1 microsecond'
  from (select name from @schema.gate where name = $1 and fence = $2 and not done and @durable
           for no key update skip locked) seen
 where g.name = seen.name returning g.fence";

/// `$1` name, `$2` fencing token. Whether that run still has the row, and whether it was ended before another was
/// claimed. No row if the name has none any more.
pub(super) const FATE: &str = "\
select fence = $2 and not done, fence >= $2 and overtaken < $2 from @schema.gate where name = $1";

/// `$1` name, the row that was seen: `$2` fencing token, `$3` end of the lease; `$4` tick, `$5` how far ahead a tick
/// may be in seconds. Brings what a clock has written that was set back since to the latest that this one can have
/// written: a lease is not over sooner than its holder believes, and the tick `$4` comes after the last one.
pub(super) const SET_RIGHT: &str = "\
update @schema.gate g
   set lease_until = least(g.lease_until, clock_timestamp() + case when g.done then interval '0' else g.lease end),
       tick = case when g.tick > clock_timestamp() + make_interval(secs => $5)
                   then $4 - interval '1 microsecond' else g.tick end
  from (select name from @schema.gate where name = $1 and fence = $2 and lease_until = $3 and @durable
           for no key update skip locked) seen
 where g.name = seen.name returning g.fence";

/// `$1` name, `$2` fencing token. Both raise an error if the token is not the last one.
pub(super) const GUARD: &str = "select @schema.guard($1, $2)";
pub(super) const FINISH: &str = "select @schema.finish($1, $2)";

#[cfg(test)]
mod tests {
    /// Reads the statements from this file, so that it finds the one that is added next.
    #[test]
    fn each_statement_that_writes_waits_for_the_disk() {
        let (statements, _) = include_str!("sql.rs").split_once("#[cfg(test)]").expect("this");
        let texts = statements.split("pub(super) const ").skip(1);
        let texts = texts.filter_map(|it| it.split_once("\";").map(|(text, _)| text));
        let writes = |text: &&str| {
            ["insert into ", "update ", "delete "].iter().any(|verb| text.contains(verb))
        };
        let writing: Vec<&str> = texts.filter(writes).collect();
        assert!(writing.len() >= 6, "{writing:?}");
        for text in writing {
            assert!(text.contains("@durable"), "{text}");
        }
    }
}
