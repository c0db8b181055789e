//! `rayon::spawn`.

use std::hint::black_box;

macro_rules! one {
    ($n:expr, $subject:expr) => {{
        #[inline(never)]
        fn submit((): (), captured: u64) {
            rayon::spawn(move || _ = black_box(captured * ($n)));
        }
        submit($subject, black_box(1));
    }};
}

fn main() {
    punctual_closures::each!(one, ());
}
