//! The check of the lock order rejects what it should.

use super::{LEAF, OUTERMOST, READY_LIST, STRIPE, assert_none_held};
use crate::{
    sync::{Mutex, Parker},
    unwind::{contain, message_of},
};

fn outermost() -> Mutex<char, OUTERMOST> {
    Mutex::new('o')
}

fn ready_list() -> Mutex<char, READY_LIST> {
    Mutex::new('r')
}

fn stripe(number: usize) -> Mutex<char, STRIPE> {
    Mutex::numbered(number, 's')
}

fn leaf<T>(value: T) -> Mutex<T, LEAF> {
    Mutex::new(value)
}

/// The message of the check about `steps`; empty if it accepts them.
fn verdict_on(steps: impl FnOnce()) -> String {
    let verdict = contain(steps).map_err(|payload| message_of(&*payload).to_owned());
    assert_none_held("the test goes on");
    verdict.err().unwrap_or_default()
}

#[test]
fn locks_can_be_taken_in_their_order() {
    let (outermost, ready_list, leaf) = (outermost(), ready_list(), leaf(()));
    let stripes = [0, 1, 15].map(stripe);
    let verdict = verdict_on(|| {
        let _outermost = outermost.lock();
        let ready_list = ready_list.lock();
        let stripes = stripes.each_ref().map(Mutex::lock);
        drop(leaf.lock());
        // The guards are dropped in another order than they were taken.
        drop(ready_list);
        drop(leaf.lock());
        drop(stripes);
        drop(leaf.lock());
    });
    assert_eq!(verdict, "");
}

#[test]
fn a_lock_cannot_be_taken_under_one_that_comes_later() {
    let (outermost, ready_list, stripe) = (outermost(), ready_list(), stripe(0));
    let verdict = verdict_on(|| {
        let _stripe = stripe.lock();
        drop(ready_list.lock());
    });
    assert!(verdict.contains("holds `char` (stripe 0) takes `char` (ready list)"), "{verdict}");
    let verdict = verdict_on(|| {
        let _ready_list = ready_list.lock();
        drop(outermost.lock());
    });
    assert!(verdict.contains("(ready list) takes `char` (outermost)"), "{verdict}");
}

#[test]
fn nothing_is_taken_under_a_leaf() {
    let (one, other, stripe) = (leaf(1_u8), leaf(2_u16), stripe(0));
    let verdict = verdict_on(|| {
        let _one = one.lock();
        drop(other.lock());
    });
    assert!(verdict.contains("holds `u8` (leaf) takes `u16` (leaf)"), "{verdict}");
    let verdict = verdict_on(|| {
        let _one = one.lock();
        drop(stripe.lock());
    });
    assert!(verdict.contains("holds `u8` (leaf) takes `char` (stripe 0)"), "{verdict}");
}

#[test]
fn stripes_are_taken_by_their_numbers() {
    let (first, second) = (stripe(0), stripe(1));
    let verdict = verdict_on(|| {
        let _second = second.lock();
        drop(first.lock());
    });
    assert!(verdict.contains("(stripe 1) takes `char` (stripe 0)"), "{verdict}");
}

/// Otherwise the thread would wait for itself.
#[test]
fn a_lock_is_not_taken_twice() {
    let (outermost, stripe) = (outermost(), stripe(3));
    let verdict = verdict_on(|| {
        let _held = outermost.lock();
        drop(outermost.lock());
    });
    assert!(verdict.contains("(outermost) takes `char` (outermost)"), "{verdict}");
    let verdict = verdict_on(|| {
        let _held = stripe.lock();
        drop(stripe.lock());
    });
    assert!(verdict.contains("(stripe 3) takes `char` (stripe 3)"), "{verdict}");
}

#[test]
fn no_thread_sleeps_while_it_holds_a_lock() {
    let (leaf, outermost) = (leaf(()), outermost());
    let verdict = verdict_on(|| {
        let _held = leaf.lock();
        Parker::current().park();
    });
    assert!(verdict.contains("about to sleep under the lock of `()` (leaf)"), "{verdict}");
    let verdict = verdict_on(|| {
        let _held = (outermost.lock(), leaf.lock());
        Parker::current().park();
    });
    assert!(verdict.contains("about to sleep under the lock of `()` (leaf)"), "{verdict}");
}
