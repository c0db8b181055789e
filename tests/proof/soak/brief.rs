//! Short-lived pools beside the long-lived one: of every configuration, with a little work, ended
//! in every way.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use punctual::{
    AbortPolicy, BlockPolicy, Builder, CallerRunsPolicy, DiscardOldestPolicy, DiscardPolicy,
    ExecutorState, Grace, Handle, RejectionReason, ScheduledFuture, ScheduledThreadPoolExecutor,
};

use crate::{
    dice::Dice,
    patience::LONG,
    soak::{Soak, eventually},
    tasks::Work,
};

/// Builds a pool, gives it work, and ends it.
pub(crate) fn pool(soak: &Arc<Soak>, dice: &mut Dice) {
    let (builder, is_bounded) = make(dice);
    let pool = builder.build().expect("the settings are good");
    let handle = pool.handle();
    let rounds = dice.roll(20);
    let mut futures: Vec<_> =
        (0..rounds).filter_map(|_| submit(soak, &handle, dice, is_bounded)).collect();
    for future in futures.iter().filter(|_| dice.one_in(4)) {
        future.cancel();
    }
    futures.retain(|_| dice.one_in(2));
    end(pool, dice);
    soak.brief_pools.add(1);
    let has_ended = handle.await_termination(LONG);
    if has_ended != Ok(true) || !eventually(|| futures.iter().all(|task| task.is_done())) {
        soak.ledger.complain("a brief pool does not end, or one of its futures does not");
    }
    let now = handle.statistics();
    let adds_up = now.submitted == now.completed + now.failed + now.cancelled;
    let is_empty = (now.pending, now.active, now.pool_size) == (0, 0, 0);
    if !adds_up || !is_empty || now.state != ExecutorState::Terminated {
        soak.ledger.complain(format!("a brief pool has left something: {now:?}"));
    }
}

/// A pool with any configuration, and whether it may reject tasks while it is open.
fn make(dice: &mut Dice) -> (Builder, bool) {
    let mut builder = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(dice.roll(4) as usize)
        .keep_alive(dice.up_to_ms(2) + Duration::from_nanos(1))
        .allows_core_thread_timeout(dice.one_in(3))
        .executes_existing_delayed_tasks_after_shutdown(dice.one_in(2))
        .thread_name("brief");
    if dice.one_in(3) {
        builder = builder.max_pending(1 + dice.roll(7) as usize);
        let timeout = Duration::from_micros(300);
        builder = match dice.roll(5) {
            0 => builder.rejected_execution_handler(AbortPolicy),
            1 => builder.rejected_execution_handler(BlockPolicy::new(timeout)),
            2 => builder.rejected_execution_handler(CallerRunsPolicy),
            3 => builder.rejected_execution_handler(DiscardOldestPolicy),
            _ => builder.rejected_execution_handler(DiscardPolicy),
        };
        return (builder, true);
    }
    (builder, false)
}

fn submit(
    soak: &Soak,
    pool: &Handle,
    dice: &mut Dice,
    is_bounded: bool,
) -> Option<ScheduledFuture<()>> {
    let delay = match dice.roll(4) {
        0 => Duration::ZERO,
        1 => Duration::from_secs(60),
        _ => dice.up_to_ms(3),
    };
    let now = Instant::now();
    // The submitter may run a rejected task itself, at once.
    let due = if is_bounded { now } else { now + delay };
    let capture = soak.ledger.enter("a task of a brief pool", Some(now));
    let work = Work::any(dice);
    let capture = if work != Work::Panic && dice.one_in(10) { capture.armed() } else { capture };
    let body = move || {
        capture.begins(due);
        work.act();
    };
    let period = Duration::from_micros(100 + dice.roll(2_000));
    let tried = match dice.roll(4) {
        0 => pool.schedule_at_fixed_rate(delay, period, body),
        1 => pool.schedule_with_fixed_delay(delay, period, body),
        2 => pool.task().timeout(dice.up_to_ms(3)).schedule(delay, body),
        _ => pool.schedule(delay, body),
    };
    match tried {
        Ok(future) => Some(future),
        Err(error) if matches!(error.reason(), RejectionReason::Saturated) && is_bounded => None,
        Err(error) => {
            soak.ledger.complain(format!("a brief pool: {error}"));
            None
        }
    }
}

/// Ends the pool in one of the ways that do not wait for far tasks.
fn end(pool: ScheduledThreadPoolExecutor, dice: &mut Dice) {
    let handle = pool.handle();
    let milli = Duration::from_millis(1);
    match dice.roll(8) {
        0 => drop(pool),
        1 => pool.shutdown_background(),
        2 => drop(pool.shutdown_now()),
        3 => pool.shutdown_now().filter(|task| task.is_due()).for_each(|task| task.run()),
        4 => _ = pool.shutdown_within(Grace::patience(milli).then(Duration::MAX)),
        5 => {
            // One of the pool's own tasks ends it.
            let own = handle.clone();
            _ = handle.execute(move || drop(own.shutdown_now()));
            thread::sleep(dice.up_to_ms(1));
            drop(pool);
        }
        6 => {
            pool.shutdown();
            handle.set_executes_existing_delayed_tasks_after_shutdown(false);
            _ = pool.close();
        }
        _ => {
            handle.set_executes_existing_delayed_tasks_after_shutdown(false);
            pool.close_background();
        }
    }
}
