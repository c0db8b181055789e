//! The word of a run that is put off, in every order of steps, and with every value that the memory model lets a load return.

use super::*;
use crate::sync::{
    exhaustive::{Note, check},
    thread,
};

/// A debounced call finds that the run is already put off to a later moment. If it has joined that run, the worker that
/// closes the word sees what the caller did before; otherwise it is told to ask under the lock.
#[test]
fn a_run_that_a_call_joins_sees_what_came_before_it() {
    check(|| {
        let extension = Extension::new(Opens::Always, Some(Timestamp::PAST));
        let (word, caller) = (extension.word(), Note::default());
        assert!(word.put_off_to(Timestamp::from_nanos(2_000)));
        let seen = caller.clone();
        let worker = thread::spawn(move || {
            let later = extension.close();
            (later, seen.get())
        });
        caller.add();
        let has_joined = word.put_off_for_call(|_| Timestamp::from_nanos(1_000));
        let (later, seen) = worker.join().expect("no thread panics");
        assert_eq!(later, Some(Timestamp::from_nanos(2_000)), "the later moment stays");
        assert!(!has_joined || seen == 1, "the run sees what the caller did");
    });
}
