//! Calls that several threads make at the same time.
//!
//! The threads are always the same: the executor assigns each a stripe of its queue, so it matters
//! which thread scheduled the pending tasks. (Threads started for each measurement would sometimes
//! share a stripe and sometimes not, and would never have those tasks in it.)

use std::{
    sync::{
        Arc, Barrier, LazyLock,
        mpsc::{self, Sender},
    },
    thread,
    time::{Duration, Instant},
};

/// A piece of work for a thread.
type Piece = Box<dyn FnOnce() + Send>;

/// The threads with which the caller of [`share_out`] shares the calls.
static OTHERS: LazyLock<[Sender<Piece>; 3]> = LazyLock::new(|| {
    [(); 3].map(|()| {
        let (sender, pieces) = mpsc::channel::<Piece>();
        thread::spawn(move || pieces.into_iter().for_each(|piece| piece()));
        sender
    })
});

/// Lets `threads` threads, at most four and the caller among them, make `count` calls: `work` makes
/// one thread's share of them. Returns the time from the first thread's beginning to the last one's
/// end, and what each thread returned.
pub(crate) fn share_out<R: Send + 'static>(
    threads: usize,
    count: u64,
    work: impl Fn(u64) -> R + Send + Sync + 'static,
) -> (Duration, Vec<R>) {
    let shared = Arc::new((Barrier::new(threads), work));
    let (report, reports) = mpsc::channel();
    let piece = |number| {
        let (shared, report) = (Arc::clone(&shared), report.clone());
        let share = count / threads as u64 + u64::from(number < count % threads as u64);
        move || {
            let (all_are_here, work) = &*shared;
            all_are_here.wait();
            let begin = Instant::now();
            let made = work(share);
            report.send((begin, Instant::now(), made)).expect("it is waited for");
        }
    };
    for (number, other) in (1..).zip(&OTHERS[..threads - 1]) {
        other.send(Box::new(piece(number))).expect("the thread waits for work");
    }
    piece(0)();
    drop(report);
    let reports: Vec<_> = reports.into_iter().collect();
    assert_eq!(reports.len(), threads, "one has panicked");
    let begin = reports.iter().map(|(begin, ..)| *begin).min();
    let end = reports.iter().map(|(_, end, _)| *end).max();
    let time = end.zip(begin).map_or(Duration::ZERO, |(end, begin)| end - begin);
    (time, reports.into_iter().map(|(.., made)| made).collect())
}
