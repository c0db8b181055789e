//! The client that retries.

use super::demonstrates;

#[test]
fn it_gets_its_answer_and_gives_up_in_time() {
    demonstrates("retry", |end| {
        end.has_line(&["attempt 1: silent", "again in 10ms"])
            && end.has_line(&["attempt 2: busy", "again in 20ms"])
            && end.has_line(&["the answer is 42"])
            && end.has_line(&["with 70 ms for all of it: the time was up"])
    });
}
