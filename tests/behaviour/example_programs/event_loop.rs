//! The server in one thread.

use super::demonstrates;

#[test]
fn it_serves_and_keeps_time_in_one_thread() {
    let conversation = ["a guest has come", "it says good morning", "it says how do you do"];
    let silence = ["beat 1", "beat 2", "the guest was silent for 120ms"];
    demonstrates("event_loop", |end| {
        end.has_lines(&conversation)
            && end.has_line(&["another thread says that it was heard"])
            && end.has_lines(&silence)
            && end.has_line(&["the executor has terminated"])
    });
}
