//! A bounded memory that forgets what came into it first.
//!
//! As Hermes forgets (`tools/file_state.py`, `_cap_dict`): what is known already keeps
//! its place when it is noted again, and only what was taken out comes anew.

use std::hash::Hash;

use indexmap::{Equivalent, IndexMap};

/// At most so many values by their keys, which are in the order they came in.
#[derive(Clone, Debug)]
pub(super) struct Oldest<K, V, const MAX: usize>(IndexMap<K, V>);

// Written out: neither keys nor values need a default.
impl<K, V, const MAX: usize> Default for Oldest<K, V, MAX> {
    fn default() -> Self {
        Self(IndexMap::default())
    }
}

impl<K: Hash + Eq, V, const MAX: usize> Oldest<K, V, MAX> {
    pub(super) fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.0.get(key)
    }

    /// Notes a value; what came first goes where there is no room.
    pub(super) fn insert(&mut self, key: K, value: V) {
        self.0.insert(key, value);
        while self.0.len() > MAX {
            self.0.shift_remove_index(0);
        }
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.0.shift_remove(key);
    }

    /// Keeps those whose key is wanted.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&K) -> bool) {
        self.0.retain(|key, _| is_wanted(key));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(memory: &Oldest<&str, u32, 3>) -> Vec<(&'static str, u32)> {
        ["z", "y", "x", "a"]
            .into_iter()
            .filter_map(|key| Some((key, *memory.get(key)?)))
            .collect()
    }

    #[test]
    fn what_came_first_goes_first_whatever_it_is_called() {
        let mut memory = Oldest::<&str, u32, 3>::default();
        for (key, value) in [("z", 1), ("y", 2), ("x", 3), ("z", 4)] {
            memory.insert(key, value);
        }
        assert_eq!(holds(&memory), [("z", 4), ("y", 2), ("x", 3)]);
        // That it was noted again made it no younger.
        memory.insert("a", 5);
        assert_eq!(holds(&memory), [("y", 2), ("x", 3), ("a", 5)]);
    }

    #[test]
    fn what_was_taken_out_comes_anew() {
        let mut memory = Oldest::<&str, u32, 3>::default();
        for (key, value) in [("z", 1), ("y", 2), ("x", 3)] {
            memory.insert(key, value);
        }
        memory.remove(&"z");
        memory.insert("z", 6);
        memory.insert("a", 7);
        assert_eq!(holds(&memory), [("z", 6), ("x", 3), ("a", 7)]);
        memory.retain(|key| *key != "x");
        memory.insert("y", 8);
        assert_eq!(holds(&memory), [("z", 6), ("y", 8), ("a", 7)]);
        memory.clear();
        assert!(holds(&memory).is_empty());
    }
}
