//! What stands on the doors of the crate: features that use only its public names.
//!
//! A gate, a trigger, a decorator and a hook are open to every user, and so are these modules' means. Of `crate::` they
//! name only what `lib.rs` exports, and `tests/proof/doors` compiles the same files once more outside of the crate. So
//! a user who wants such a feature a little different can copy the file. The methods by which a program gets them, such as
//! [`Handle::debounce`](crate::Handle::debounce), are in `src/observing.rs` and `src/pacing.rs`.

pub(crate) mod observe;
pub(crate) mod pace;
