//! The executor that is shown: two workers, and tasks that give them too much to do now and then.

use std::{error::Error, time::Duration};

use punctual::{
    Clock, FailurePolicy, Handle, ManualClock, RejectedExecutionError, ScheduledThreadPoolExecutor,
    TaskHandle, current_task,
    trigger::{every, fixed_delay},
};

use crate::{
    board::{Board, Snapshot},
    feed::Feed,
    options::Options,
    server, work,
};

pub(crate) struct Demo {
    executor: ScheduledThreadPoolExecutor,
    manual: Option<ManualClock>,
    board: Board,
    tasks: Vec<TaskHandle>,
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

impl Demo {
    /// Starts the executor. It has no tasks if other programs do the work that is shown.
    pub(crate) fn start(options: &Options) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let manual = options.is_manual.then(ManualClock::new);
        let clock = manual.clone().map_or_else(Clock::system, Clock::from);
        let board = Board::new(&clock);
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2).clock(clock);
        let executor = board.watch(builder).build()?;
        let tasks = if options.database.is_none() { submit(&executor)? } else { Vec::new() };
        let demo = Self { executor, manual, board, tasks };
        demo.advance(Duration::ZERO);
        Ok(demo)
    }

    pub(crate) fn tasks(&self) -> &[TaskHandle] {
        &self.tasks
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.board.snapshot(&self.executor, &self.tasks)
    }

    /// Opens a queue on the executor: the one of this demonstration, or that of a database.
    pub(crate) fn open_queue(
        &self,
        database: Option<&str>,
    ) -> Result<Feed, Box<dyn Error + Send + Sync>> {
        let queue = match database {
            Some(url) => server::open(&self.executor, url)?,
            None => work::open(&self.executor)?,
        };
        self.advance(Duration::ZERO);
        Ok(Feed::new(queue, database.is_some(), self.executor.clock().clone()))
    }

    pub(crate) fn is_manual(&self) -> bool {
        self.manual.is_some()
    }

    /// Moves the clock and waits until what is due has run, if the clock is a manual one.
    pub(crate) fn advance(&self, span: Duration) {
        if let Some(clock) = &self.manual {
            clock.run_for(span);
        }
    }
}

/// No task of this demonstration is worth waiting for.
impl Drop for Demo {
    fn drop(&mut self) {
        drop(self.executor.shutdown_now());
    }
}

fn submit(executor: &Handle) -> Result<Vec<TaskHandle>, RejectedExecutionError> {
    let named = |name: &str| executor.task().name(name).on_failure(FailurePolicy::resume());
    let heartbeat = named("heartbeat").repeat(every(ms(200)), || ())?;
    let metrics = named("metrics").repeat(every(ms(1000)).first_in(ms(1000)), || work(ms(120)))?;
    let mut mails = 0;
    let mail = named("mail").repeat(every(ms(500)).first_in(ms(250)), move || {
        mails += 1;
        work(ms(60));
        assert!(mails % 4 != 0, "the server does not answer");
    })?;
    let backup =
        named("backup").repeat(fixed_delay(ms(2000)).first_in(ms(500)), || work(ms(700)))?;
    let cleanup = named("cleanup").repeat(every(ms(1000)).first_in(ms(1000)), || work(ms(10)))?;
    cleanup.pause();
    let import = named("import").schedule(ms(3000), || work(ms(1500)))?;
    let renewal = named("renewal").schedule(ms(3_600_000), || ())?;
    Ok(vec![
        heartbeat.task_handle(),
        metrics.task_handle(),
        mail.task_handle(),
        backup.task_handle(),
        cleanup.task_handle(),
        import.task_handle(),
        renewal.task_handle(),
    ])
}

/// Takes time, as work does; it ends early when the executor stops.
fn work(time: Duration) {
    if let Some(task) = current_task() {
        let _ = task.token().sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a database, the demo submits no tasks of its own: they would not be jobs of that database.
    #[test]
    fn a_database_has_no_invented_tasks() {
        for database in [None, Some("host=/tmp".to_owned())] {
            let has_tasks = database.is_none();
            let demo = Demo::start(&Options { database, ..Options::default() }).expect("it starts");
            assert_eq!(
                (demo.tasks().is_empty(), demo.executor.statistics().submitted == 0),
                (!has_tasks, !has_tasks)
            );
        }
    }
}
