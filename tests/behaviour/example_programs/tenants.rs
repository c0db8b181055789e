//! The customers that share a pool.

use super::demonstrates;

#[test]
fn nobody_occupies_the_pool_and_one_leaves() {
    let left = "leaving: ran farewell; cancelled next year; nothing is left: true";
    demonstrates("tenants", |end| {
        end.has_line(&["busy: a job of late has overtaken", "jobs"])
            && end.has_line(&["busy: 20 jobs, never more than 2 at once"])
            && end.has_line(&["late: paused, 0 reports meanwhile"])
            && end.has_line(&[left])
            && end.has_line(&["leaving: the task was rejected: its group was shut down"])
            && end.has_line(&["the pool goes on: it does"])
    });
}
