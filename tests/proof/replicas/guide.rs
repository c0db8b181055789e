//! The examples of the guide of punctual-jobs are tests of this package: the package that users get has no pages, and its own
//! documentation tests must compile there.

#[cfg(doctest)]
#[doc = include_str!("../../../crates/punctual-jobs/docs/guide.md")]
struct Guide;
