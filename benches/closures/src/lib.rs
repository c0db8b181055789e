//! Repeats one submission, each time with a closure of its own type.

/// Expands `one!(n, subject)` for two numbers, and with the feature `many` for fifty more. The numbers go into the closures,
/// so that the compiler finds no two alike and merges none.
#[macro_export]
macro_rules! each {
    ($one:ident, $subject:expr) => {
        $one!(1, $subject);
        $one!(2, $subject);
        #[cfg(feature = "many")]
        {
            $crate::ten!($one, 10, $subject);
            $crate::ten!($one, 20, $subject);
            $crate::ten!($one, 30, $subject);
            $crate::ten!($one, 40, $subject);
            $crate::ten!($one, 50, $subject);
        }
    };
}

/// Expands `one!(n, subject)` for ten numbers from `from` on.
#[macro_export]
macro_rules! ten {
    ($one:ident, $from:literal, $subject:expr) => {
        $one!($from, $subject);
        $one!($from + 1, $subject);
        $one!($from + 2, $subject);
        $one!($from + 3, $subject);
        $one!($from + 4, $subject);
        $one!($from + 5, $subject);
        $one!($from + 6, $subject);
        $one!($from + 7, $subject);
        $one!($from + 8, $subject);
        $one!($from + 9, $subject);
    };
}
