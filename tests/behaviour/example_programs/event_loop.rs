//! The server in one thread.

use super::demonstration;

#[test]
fn it_serves_and_keeps_time_in_one_thread() {
    let end = demonstration("event_loop");
    let conversation = ["a guest has come", "it says good morning", "it says how do you do"];
    assert!(end.has_lines(&conversation), "{end:?}");
    assert!(end.has_line(&["another thread says that it was heard"]), "{end:?}");
    let silence = ["beat 1", "beat 2", "the guest was silent for 120ms"];
    assert!(end.has_lines(&silence), "{end:?}");
    assert!(end.has_line(&["the executor has terminated"]), "{end:?}");
}
