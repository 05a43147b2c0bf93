//! Drawing values from strategies, in a fixed order from a fixed seed.

use anyhow::anyhow;
use bisim::generate::Choices;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A source of made-up values.
pub struct Draw {
    runner: TestRunner,
}

impl Draw {
    /// The values of this seed.
    pub fn seeded(seed: &str) -> Self {
        let mut bytes = [0_u8; 32];
        for (place, byte) in bytes.iter_mut().zip(seed.bytes()) {
            *place = byte;
        }
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self {
            runner: TestRunner::new_with_rng(Config::default(), rng),
        }
    }

    /// The next value of a strategy.
    pub fn from<S: Strategy>(&mut self, strategy: S) -> anyhow::Result<S::Value> {
        strategy
            .new_tree(&mut self.runner)
            .map(|tree| tree.current())
            .map_err(|reason| anyhow!("a strategy gives no value: {reason}"))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> anyhow::Result<usize> {
        self.from(0..end.max(1))
    }

    /// One of these.
    pub fn one<T: Clone>(&mut self, values: &[T]) -> anyhow::Result<T> {
        let at = self.below(values.len())?;
        values
            .get(at)
            .cloned()
            .ok_or_else(|| anyhow!("nothing to choose from"))
    }

    /// True in `percent` of a hundred times.
    pub fn chance(&mut self, percent: usize) -> anyhow::Result<bool> {
        Ok(self.below(100)? < percent)
    }
}

impl Choices for Draw {
    type Error = anyhow::Error;

    fn below(&mut self, end: usize) -> anyhow::Result<usize> {
        Self::below(self, end)
    }
}
