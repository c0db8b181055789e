//! The client that retries.

use super::demonstration;

#[test]
fn it_gets_its_answer_and_gives_up_in_time() {
    let end = demonstration("retry");
    assert!(end.has_line(&["attempt 1: silent", "again in 10ms"]), "{end:?}");
    assert!(end.has_line(&["attempt 2: busy", "again in 20ms"]), "{end:?}");
    assert!(end.has_line(&["the answer is 42"]), "{end:?}");
    assert!(end.has_line(&["with 70 ms for all of it: the time was up"]), "{end:?}");
}
