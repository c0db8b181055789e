//! The tests whose executors have threads although one worker would do, and why.

/// Each begins with a path, of a test or of a room, below which all tests count.
pub const WITH_THREADS: &[(&str, &str)] =
    &[("workers::", "it is about threads that are started, retire and are counted")];

/// Returns `true` if the calling thread is that of such a test. (The test runner calls its threads by the
/// names of the tests.)
pub fn is_with_threads() -> bool {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    WITH_THREADS.iter().any(|(path, _)| name.starts_with(path))
}
