//! Rows of choices, whatever they are drawn from.
//!
//! What for: the same ordinary work is drawn for suites, by strategies of proptest whose
//! values are in files, and for campaigns, from a number in a name.

/// A row of choices.
pub trait Choices {
    /// Why there is no next one.
    type Error;

    /// A number below `end`, or 0.
    ///
    /// # Errors
    /// There is no next choice.
    fn below(&mut self, end: usize) -> Result<usize, Self::Error>;

    /// One of these; the default of the type where there are none.
    ///
    /// # Errors
    /// There is no next choice.
    fn one<T: Clone + Default>(&mut self, values: &[T]) -> Result<T, Self::Error> {
        let at = self.below(values.len())?;
        Ok(values.get(at).cloned().unwrap_or_default())
    }

    /// True in `percent` of a hundred times.
    ///
    /// # Errors
    /// There is no next choice.
    fn chance(&mut self, percent: usize) -> Result<bool, Self::Error> {
        Ok(self.below(100)? < percent)
    }
}
