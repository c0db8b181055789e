//! The random numbers: splitmix64, the same in every language, so that all peers are given the
//! same delays.

use std::time::Duration;

pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform below `n`, which is less than 2³².
    #[inline]
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((self.next() >> 32) * n) >> 32
    }

    /// A delay so long that nothing falls due during the measurement: one to two hours.
    #[inline]
    pub(super) fn far(&mut self) -> Duration {
        Duration::from_micros(3_600_000_000 + self.below(3_600_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn is_splitmix64() {
        assert_eq!(Rng::new(0).next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(Rng::new(1).below(100), 56);
    }
}
