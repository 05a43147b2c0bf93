//! Choices from one number, the same every time.

use std::convert::Infallible;

use crate::generate::choices::Choices;

/// A row of choices.
pub struct Draw(u64);

impl Draw {
    /// The row that begins at this number.
    pub fn from(salt: u32) -> Self {
        Self(u64::from(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    /// One of these; the default of the type where there are none.
    pub fn one<T: Clone + Default>(&mut self, values: &[T]) -> T {
        values
            .get(self.below(values.len()))
            .cloned()
            .unwrap_or_default()
    }

    /// True in `percent` of a hundred times.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

impl Choices for Draw {
    type Error = Infallible;

    fn below(&mut self, end: usize) -> Result<usize, Infallible> {
        Ok(Self::below(self, end))
    }
}
