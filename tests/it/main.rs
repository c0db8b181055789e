//! Behaviour through the public API, in one binary: one file for each family of properties.
//!
//! Timed behaviour is tested on the manual clock, exactly; tests on the system clock assert lower
//! bounds only. The ids in the comments (SO-001 …) are those of `docs/conformance.md`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests have threads of their own"
)]
#![allow(missing_docs)]

mod support;
