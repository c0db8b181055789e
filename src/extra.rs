//! What stands on the doors of the crate: features that use only its public names.
//!
//! A gate, a trigger, a decorator and a hook are open to every user, and so are these modules' means. Of `crate::` they
//! name only what `lib.rs` exports, and `tests/proof/doors` compiles the same files once more outside of the crate. So
//! whoever wants such a feature a little different copies the file. The few methods that put them within reach, as
//! [`Handle::debounce`](crate::Handle::debounce), are in `src/task_builder/pacing.rs`.

pub(crate) mod pace;
