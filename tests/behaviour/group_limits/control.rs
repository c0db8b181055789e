//! Requests for a task that waits for its group.

use std::time::{Duration, SystemTime};

use punctual::{
    CancelReason, Group, ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor as Executor,
    TaskState, current_task,
    trigger::{Due, every, from_fn, on_demand},
};

use super::support::{Busy, noting, until_held};
use crate::support::{Counter, Drops, Log, assert_cancelled, eventually, hold, manual, ms};

/// A group with a limit of one, whose permit is taken.
struct Scene {
    clock: ManualClock,
    executor: Executor,
    group: Group,
    busy: Busy,
    log: Log<(Duration, u32)>,
}

impl Scene {
    fn new() -> Self {
        let (clock, executor) = manual(2);
        let group = executor.group("g").limit(1).build().unwrap();
        let busy = Busy::start(&group);
        Self { clock, executor, group, busy, log: Log::new() }
    }

    fn note(&self, number: u32) -> impl FnMut() + Send + 'static + use<> {
        let (log, clock) = (self.log.clone(), self.clock.clone());
        move || log.push((clock.elapsed(), number))
    }

    /// A task that runs once and waits since 10.
    fn waits(&self, number: u32) -> ScheduledFuture<()> {
        let note = self.note(number);
        let count = self.group.statistics().waiting;
        let task = self.group.task().schedule(ms(10), note).unwrap();
        self.wait(count + 1);
        task
    }

    /// A rate of 100 whose run at 10 waits.
    fn rate(&self) -> ScheduledFuture<()> {
        let rate = self.group.task().schedule_at_fixed_rate(ms(10), ms(100), self.note(1)).unwrap();
        self.wait(1);
        rate
    }

    /// Moves the clock to 15, when so many tasks wait.
    fn wait(&self, count: usize) {
        self.clock.advance(ms(15));
        eventually("it waits", || {
            let now = self.group.statistics();
            // A worker that has taken one has put it back.
            now.waiting >= count && self.executor.statistics().active == now.active
        });
    }

    /// Releases the permit, and has time pass until 500.
    fn go_on(self) -> Vec<(u64, u32)> {
        self.busy.end();
        self.clock.run_until_idle();
        self.clock.run_for(ms(485));
        self.log.entries().into_iter().map(|(at, number)| (at.as_millis() as u64, number)).collect()
    }
}

#[test]
fn it_is_cancelled() {
    let scene = Scene::new();
    let drops = Drops::new();
    let token = drops.token();
    let task = scene.group.task().submit(move || hold(&token)).unwrap();
    until_held(&scene.group, 1);
    let second = scene.waits(2);
    assert!(task.cancel());
    assert_eq!(drops.count(), 1);
    assert_cancelled(&task, CancelReason::Requested);
    assert_eq!(scene.executor.pending_count(), 1);
    assert_eq!(scene.go_on(), [(15, 2)]);
    assert!(second.is_done());
}

#[test]
fn it_is_removed() {
    let scene = Scene::new();
    let task = scene.waits(1);
    assert!(scene.executor.remove(&task));
    assert_cancelled(&task, CancelReason::Removed);
    assert_eq!(scene.group.statistics().cancelled, 1);
    assert_eq!(scene.go_on(), []);
}

#[test]
fn it_is_moved() {
    let scene = Scene::new();
    let (first, second) = (scene.waits(1), scene.waits(2));
    assert!(first.reschedule(ms(100)));
    assert_eq!((first.delay(), second.delay()), (Some(ms(100)), Some(ms(0))));
    assert_eq!(scene.go_on(), [(30, 2), (130, 1)]);
}

/// A task that is moved before those that wait comes before them.
#[test]
fn it_is_moved_to_the_front() {
    let scene = Scene::new();
    let later = noting(&scene.group, &Log::new(), ms(400), ());
    let _first = scene.waits(1);
    let note = scene.note(2);
    let third = scene.group.task().schedule(ms(400), note).unwrap();
    assert!(later.cancel());
    assert!(third.reschedule_at(scene.clock.now() - ms(14)), "before the first");
    until_held(&scene.group, 2);
    assert_eq!(third.delay(), Some(ms(0)));
    assert_eq!(scene.go_on(), [(15, 1), (15, 2)], "an instant in the past means now");
}

#[test]
fn it_is_brought_forward() {
    let scene = Scene::new();
    let rate = scene.rate();
    assert!(rate.run_within(ms(50)));
    until_held(&scene.group, 1);
    assert_eq!(rate.delay(), Some(ms(0)), "it is due already");
    assert_eq!(scene.go_on(), [(15, 1), (110, 1), (210, 1), (310, 1), (410, 1)]);
}

/// A run that is due already is the one that was asked for.
#[test]
fn it_is_asked_to_run_now() {
    let scene = Scene::new();
    let rate = scene.rate();
    assert!(rate.run_now());
    assert_eq!(scene.go_on(), [(15, 1), (110, 1), (210, 1), (310, 1), (410, 1)]);
}

/// An extra run of a task that is not due has to wait for the group as well, and leaves the plan as it is.
#[test]
fn an_extra_run_waits() {
    let scene = Scene::new();
    let rate = scene.group.task().schedule_at_fixed_rate(ms(100), ms(100), scene.note(1)).unwrap();
    scene.clock.advance(ms(15));
    assert!(rate.run_now());
    until_held(&scene.group, 1);
    assert_eq!(rate.delay(), Some(ms(0)));
    assert_eq!(scene.go_on(), [(15, 1), (100, 1), (200, 1), (300, 1), (400, 1), (500, 1)]);
}

#[test]
fn it_is_given_another_schedule() {
    let scene = Scene::new();
    let rate = scene.rate();
    assert!(rate.set_trigger(every(ms(200)).first_in(ms(45))));
    assert_eq!(rate.delay(), Some(ms(45)));
    assert_eq!(scene.go_on(), [(60, 1), (260, 1), (460, 1)]);
}

/// A pause of the task itself takes it out of the order.
#[test]
fn it_is_paused_and_resumed() {
    let scene = Scene::new();
    let (first, _second) = (scene.waits(1), scene.waits(2));
    let third = scene.waits(3);
    assert!(first.pause());
    assert_eq!((first.state(), first.delay()), (TaskState::Paused, None));
    assert!(third.pause() && third.resume());
    assert_eq!(scene.go_on(), [(45, 2), (45, 3)]);
    assert_cancelled(&first, CancelReason::ExecutorDropped);
}

/// A time limit goes on while its task waits.
#[test]
fn its_time_limit_goes_on() {
    let scene = Scene::new();
    let note = scene.note(1);
    let task = scene.group.task().timeout(ms(30)).schedule(ms(10), note).unwrap();
    let second = scene.waits(2);
    scene.clock.advance(ms(40));
    eventually("its time is up", || task.is_done());
    assert_cancelled(&task, CancelReason::TimedOut);
    assert_eq!(scene.group.statistics().cancelled, 1);
    // Which is counted once the task has ended.
    eventually("it is counted", || executor_timeouts(&scene) == 1);
    assert_eq!(scene.go_on(), [(55, 2)]);
    assert!(second.is_done());
}

fn executor_timeouts(scene: &Scene) -> u64 {
    scene.executor.statistics().timed_out
}

/// The limit of a task moves with it.
#[test]
fn its_time_limit_moves_with_it() {
    let scene = Scene::new();
    let note = scene.note(1);
    let task = scene.group.task().timeout(ms(30)).schedule(ms(10), note).unwrap();
    scene.wait(1);
    assert!(task.reschedule(ms(100)));
    scene.clock.advance(ms(60));
    assert!(!task.is_done());
    assert_eq!(scene.go_on(), [(115, 1)]);
}

/// A raised token ends the task when its turn comes.
#[test]
fn its_token_is_raised() {
    let (clock, executor) = manual(2);
    let group = executor.group("g").limit(1).build().unwrap();
    let runs = Counter::new();
    let counted = runs.clone();
    let (send, tokens) = std::sync::mpsc::channel();
    let rate = group
        .task()
        .schedule_at_fixed_rate(ms(0), ms(10), move || {
            counted.add();
            send.send(current_task().unwrap().token()).unwrap();
        })
        .unwrap();
    clock.run_until_idle();
    let busy = Busy::start(&group);
    clock.advance(ms(10));
    until_held(&group, 1);
    tokens.recv().unwrap().cancel();
    let next = group.task().submit(|| ()).unwrap();
    busy.end();
    next.join().unwrap();
    assert!(rate.join().is_err_and(|error| error.is_cancelled()));
    assert_eq!((runs.get(), group.statistics().cancelled), (1, 1));
}

/// A task without a plan waits for its group when a caller asks for a run.
#[test]
fn a_task_on_demand_waits() {
    let scene = Scene::new();
    let demand = scene.group.task().repeat(on_demand(), scene.note(1)).unwrap();
    scene.clock.advance(ms(15));
    assert!(demand.run_now());
    until_held(&scene.group, 1);
    assert_eq!(scene.go_on(), [(15, 1)]);
}

/// A task that waits follows the wall clock when that is set.
#[test]
fn it_follows_the_wall_clock() {
    let scene = Scene::new();
    let begin = scene.clock.wall_time();
    let moment = begin + ms(10);
    let trigger = from_fn(move |last| (last.runs() == 0).then_some(Due::Wall(moment)));
    let task = scene.group.task().repeat(trigger, scene.note(1)).unwrap();
    scene.wait(1);
    let other = scene.waits(2);
    set_wall(&scene.clock, begin - ms(70));
    eventually("it is to come", || task.delay() == Some(ms(80)));
    assert_eq!(scene.go_on(), [(30, 2), (110, 1)]);
    assert!(other.is_done());
}

fn set_wall(clock: &ManualClock, time: SystemTime) {
    clock.set_wall_time(time);
}
