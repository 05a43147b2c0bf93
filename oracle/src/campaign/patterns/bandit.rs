//! Chooses by what paid before.
//!
//! The upper confidence bound of Auer, Cesa-Bianchi and Fischer (2002): what
//! paid well is chosen again, and what was tried little is given its chance.

use super::super::plan::Numbers;

/// Arms with how often each was tried and paid.
#[derive(Clone, Debug)]
pub(in super::super) struct Bandit {
    arms: Vec<(u32, u32)>,
}

impl Bandit {
    pub(in super::super) fn new(arms: usize) -> Self {
        Self {
            arms: vec![(0, 0); arms],
        }
    }

    /// The best arm; with a turn above 0 the best but so many, so that a batch
    /// is not one arm alone.
    pub(in super::super) fn choose(&self, numbers: &mut Numbers, turn: usize) -> usize {
        let mut order = self.order(numbers, |_| true);
        let skip = turn.checked_rem(order.len().max(1)).unwrap_or(0);
        if skip < order.len() {
            order.rotate_left(skip);
        }
        order.first().copied().unwrap_or(0)
    }

    /// The best arm of those that can still pay; the best of all where none can.
    pub(in super::super) fn choose_among(
        &self,
        numbers: &mut Numbers,
        can_pay: impl Fn(usize) -> bool,
    ) -> usize {
        let order = self.order(numbers, can_pay);
        let first = order.first().copied();
        first.unwrap_or_else(|| self.choose(numbers, 0))
    }

    /// Whether a try paid.
    pub(in super::super) fn reward(&mut self, arm: usize, paid: bool) {
        if let Some((tries, pays)) = self.arms.get_mut(arm) {
            *tries = tries.saturating_add(1);
            *pays = pays.saturating_add(u32::from(paid));
        }
    }

    /// Arms, best first; equal ones in an order the numbers give.
    fn order(&self, numbers: &mut Numbers, which: impl Fn(usize) -> bool) -> Vec<usize> {
        let all: f64 = self.arms.iter().map(|(tries, _)| f64::from(*tries)).sum();
        let bound = |(tries, pays): (u32, u32)| {
            let tries = f64::from(tries) + 1.0;
            (f64::from(pays) + 0.5) / tries + (2.0 * (all + 2.0).ln() / tries).sqrt() / 2.0
        };
        let mut order: Vec<(f64, usize, usize)> = self
            .arms
            .iter()
            .enumerate()
            .filter(|(arm, _)| which(*arm))
            .map(|(arm, counts)| (bound(*counts), numbers.below(1 << 20), arm))
            .collect();
        order.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        order.into_iter().map(|(.., arm)| arm).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arms that pay with these chances, in percent.
    fn paid(chances: &[usize], rounds: u64, guided: bool) -> usize {
        let mut bandit = Bandit::new(chances.len());
        let mut all = 0;
        for round in 0..rounds {
            let mut numbers = Numbers::new(11, round, 0);
            let arm = if guided {
                bandit.choose(&mut numbers, 0)
            } else {
                numbers.below(chances.len())
            };
            let paid = numbers.below(100) < chances[arm];
            bandit.reward(arm, paid);
            all += usize::from(paid);
        }
        all
    }

    #[test]
    fn choosing_by_what_paid_beats_even_choice() {
        let chances = [2, 2, 2, 60, 2, 2, 30, 2];
        let (guided, even) = (paid(&chances, 400, true), paid(&chances, 400, false));
        assert!(guided > even * 2, "{guided} {even}");
    }

    #[test]
    fn every_arm_is_tried_and_one_that_cannot_pay_is_left_alone() {
        let mut bandit = Bandit::new(5);
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..5 {
            let arm = bandit.choose(&mut Numbers::new(1, round, 0), 0);
            bandit.reward(arm, false);
            seen.insert(arm);
        }
        assert_eq!(seen.len(), 5);
        for round in 0..50 {
            let arm = bandit.choose_among(&mut Numbers::new(2, round, 0), |arm| arm == 3);
            assert_eq!(arm, 3);
            bandit.reward(arm, false);
        }
    }
}
