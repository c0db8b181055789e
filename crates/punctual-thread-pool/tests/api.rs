//! The interface, compared with the original's while this file is compiled: every public item is used
//! with the same types against both crates, and every type has the same traits.
//!
//! A generic parameter of a function cannot be seen from outside unless it is named, so each call here names
//! as many as the function has: one more or one less does not compile.

#![allow(
    missing_docs,
    deprecated,
    reason = "the original has a deprecated method, and so has the drop-in"
)]

use std::{
    fmt::Debug,
    hash::Hash,
    marker::PhantomData,
    panic::{RefUnwindSafe, UnwindSafe},
    time::Duration,
};

type Once = fn();
type Again = fn() -> Option<Duration>;

/// Writes the interface down, once, for a crate of either name.
macro_rules! interface {
    ($name:ident, $krate:ident) => {
        mod $name {
            use $krate::{
                JobHandle, OnPoolDropBehavior, ScheduledThreadPool,
                builder::{FinalStage, NumThreadsStage},
            };

            use super::{Again, Duration, Once};

            pub(crate) type Pool = ScheduledThreadPool;
            pub(crate) type Handle = JobHandle;
            pub(crate) type OnDrop = OnPoolDropBehavior;
            pub(crate) type First = NumThreadsStage;
            pub(crate) type Last = FinalStage<'static>;

            /// The types of all functions.
            pub(crate) fn functions<'a>(_: &'a str) {
                let _: fn(usize) -> ScheduledThreadPool = ScheduledThreadPool::new;
                let _: fn() -> NumThreadsStage = ScheduledThreadPool::builder;
                let _: fn(&str, usize) -> ScheduledThreadPool = ScheduledThreadPool::with_name;
                let _: fn(NumThreadsStage, usize) -> FinalStage<'a> =
                    NumThreadsStage::num_threads::<'a>;
                let _: fn(FinalStage<'a>, &'a str) -> FinalStage<'a> =
                    FinalStage::<'a>::thread_name_pattern;
                let _: fn(FinalStage<'a>, OnPoolDropBehavior) -> FinalStage<'a> =
                    FinalStage::<'a>::on_drop_behavior;
                let _: fn(FinalStage<'a>) -> ScheduledThreadPool = FinalStage::<'a>::build;
                let _: fn(&ScheduledThreadPool, Once) -> JobHandle =
                    ScheduledThreadPool::execute::<Once>;
                let _: fn(&ScheduledThreadPool, Duration, Once) -> JobHandle =
                    ScheduledThreadPool::execute_after::<Once>;
                let _: fn(&ScheduledThreadPool, Duration, Duration, Once) -> JobHandle =
                    ScheduledThreadPool::execute_at_fixed_rate::<Once>;
                let _: fn(&ScheduledThreadPool, Duration, Duration, Once) -> JobHandle =
                    ScheduledThreadPool::execute_with_fixed_delay::<Once>;
                let _: fn(&ScheduledThreadPool, Duration, Again) -> JobHandle =
                    ScheduledThreadPool::execute_at_dynamic_rate::<Again>;
                let _: fn(&ScheduledThreadPool, Duration, Again) -> JobHandle =
                    ScheduledThreadPool::execute_with_dynamic_delay::<Again>;
                let _: fn(&JobHandle) = JobHandle::cancel;
            }

            /// The variants, all of them: the match is exhaustive, which it is for no other number.
            pub(crate) const fn variant(behavior: OnPoolDropBehavior) -> u8 {
                match behavior {
                    OnPoolDropBehavior::CompletePendingScheduled => 0,
                    OnPoolDropBehavior::DiscardPendingScheduled => 1,
                }
            }

            /// The builder's stages in one expression, with a name that lives as long as the expression.
            pub(crate) fn built() -> ScheduledThreadPool {
                ScheduledThreadPool::builder()
                    .num_threads(1)
                    .thread_name_pattern(&String::from("{}"))
                    .on_drop_behavior(OnPoolDropBehavior::DiscardPendingScheduled)
                    .build()
            }

            /// Closures that have no name, and own something that is not `Sync`.
            pub(crate) fn closures(pool: &ScheduledThreadPool) {
                let cell = || std::cell::Cell::new(0_u8);
                let (a, b, c) = (cell(), cell(), cell());
                pool.execute(move || a.set(1));
                pool.execute_at_fixed_rate(Duration::ZERO, Duration::MAX, move || b.set(1))
                    .cancel();
                pool.execute_at_dynamic_rate(Duration::ZERO, move || {
                    c.set(1);
                    None
                });
            }
        }
    };
}

interface!(here, punctual_thread_pool);
interface!(there, original);

#[test]
fn both_crates_have_these_functions() {
    here::functions("");
    there::functions("");
    here::closures(&here::built());
    there::closures(&there::built());
}

#[test]
fn the_variants_are_the_same_and_in_the_same_order() {
    use here::OnDrop as Here;
    use there::OnDrop as There;
    assert_eq!(here::variant(Here::CompletePendingScheduled), Here::CompletePendingScheduled as u8);
    assert_eq!(here::variant(Here::DiscardPendingScheduled), Here::DiscardPendingScheduled as u8);
    assert_eq!(
        there::variant(There::CompletePendingScheduled),
        There::CompletePendingScheduled as u8
    );
    assert_eq!(
        there::variant(There::DiscardPendingScheduled),
        There::DiscardPendingScheduled as u8
    );
    let text = |value: &dyn Debug| format!("{value:?}");
    assert_eq!(text(&Here::CompletePendingScheduled), text(&There::CompletePendingScheduled));
    assert_eq!(text(&Here::DiscardPendingScheduled), text(&There::DiscardPendingScheduled));
}

/// Determines whether a type has a trait: the type's own constant, where the bound holds, hides the
/// trait's.
struct Ask<T>(PhantomData<T>);

macro_rules! questions {
    ($($question:ident, $otherwise:ident: $bound:path;)+) => {
        $(
            trait $otherwise {
                const $question: bool = false;
            }
            impl<T> $otherwise for Ask<T> {}
            impl<T: $bound> Ask<T> {
                const $question: bool = true;
            }
        )+
        /// Returns which traits a type has, by name.
        macro_rules! traits {
            ($type:ty) => {[$((stringify!($question), Ask::<$type>::$question)),+]};
        }
    };
}

questions! {
    SEND, NotSend: Send;
    SYNC, NotSync: Sync;
    UNPIN, NotUnpin: Unpin;
    UNWIND_SAFE, NotUnwindSafe: UnwindSafe;
    REF_UNWIND_SAFE, NotRefUnwindSafe: RefUnwindSafe;
    CLONE, NotClone: Clone;
    COPY, NotCopy: Copy;
    DEBUG, NotDebug: Debug;
    DEFAULT, NotDefault: Default;
    EQ, NotEq: Eq;
    ORD, NotOrd: Ord;
    HASH, NotHash: Hash;
}

#[test]
fn every_type_has_the_same_traits() {
    assert_eq!(traits!(here::Pool), traits!(there::Pool), "ScheduledThreadPool");
    assert_eq!(traits!(here::Handle), traits!(there::Handle), "JobHandle");
    assert_eq!(traits!(here::OnDrop), traits!(there::OnDrop), "OnPoolDropBehavior");
    assert_eq!(traits!(here::First), traits!(there::First), "NumThreadsStage");
    assert_eq!(traits!(here::Last), traits!(there::Last), "FinalStage");
}

/// A type that has none of the traits.
type Neither = (*mut std::cell::Cell<u8>, std::marker::PhantomPinned, &'static mut u8, Ask<u8>);

/// The questions can tell a type that has a trait from one that has not.
#[test]
fn the_comparison_is_not_blind() {
    let has = |traits: [(&str, bool); 12]| traits.map(|(_, has)| has);
    assert_eq!(has(traits!(u8)), [true; 12]);
    assert_eq!(has(traits!(Neither)), [false; 12]);
    assert!(traits!(there::Pool)[..2].iter().all(|(_, has)| *has), "it is shared by threads");
    assert!(!traits!(there::Pool)[3].1, "it is not `UnwindSafe`");
}
