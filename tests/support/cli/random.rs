//! Numbers for benchmarks.

/// Numbers that look random and are the same every time: Marsaglia's xorshift of 64 bits.
pub struct Random(pub u64);

impl Random {
    /// The next word of 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A count: 0 in one case of two.
    pub fn count(&mut self) -> u64 {
        let number = self.word();
        if number.is_multiple_of(2) {
            0
        } else {
            number >> 44
        }
    }
}
