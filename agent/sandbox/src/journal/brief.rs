//! What a plan says of itself as a whole, without its steps.
//!
//! What for: which commit is the newest, how old each is and how much it holds is asked
//! at every start and with every command. A plan has lines for each name its commit
//! touched, so whoever read all plans for that would take longer with every commit kept.
//!
//! Nothing is put back on the strength of this: for that the plan is read whole, and its
//! digest looked at. It must never be read from a plan that is still being written.

use std::io;

use super::plan;
use super::root::Root;
use crate::wire::{Reader, WireError};

/// What is read of the beginning first: most plans say all of this there.
const BEGINNING_BYTES: usize = 4 << 10;
/// How many times as much is read next where that was too little.
const MORE: usize = 16;
/// What a plan ends with: how much was displaced, and its digest.
const END_BYTES: usize = 8 + plan::DIGEST_BYTES;

/// A plan without its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    /// The number it was made under.
    pub number: u64,
    /// Seconds since 1970.
    pub made_at: u64,
    /// What it was, for people.
    pub note: Vec<u8>,
    /// The transaction it takes back, if that is what it does.
    pub undoes: Option<u64>,
    pub roots: Vec<Root>,
    /// How much the names held before that it replaces or removes.
    pub bytes_before: u64,
}

impl Brief {
    /// Of a plan that is so long, which this reads from a place on, as much as fits or
    /// is left.
    pub(super) fn read(
        length: u64,
        mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    ) -> io::Result<Result<Self, &'static str>> {
        let mut bytes_before = [0; END_BYTES];
        let Some(end) = length.checked_sub(END_BYTES as u64) else {
            return Ok(Err(plan::TOO_SHORT));
        };
        if read_at(&mut bytes_before, end)? != END_BYTES {
            return Ok(Err(plan::TOO_SHORT));
        }
        let bytes_before = Reader::new(&bytes_before).u64().unwrap_or_default();
        let mut wanted = BEGINNING_BYTES;
        loop {
            let mut beginning = vec![0; wanted];
            let got = read_at(&mut beginning, 0)?;
            let is_all = got < wanted || got as u64 >= length;
            beginning.truncate(got);
            match plan::beginning(&beginning) {
                Ok(beginning) => {
                    return Ok(Ok(Self {
                        number: beginning.number,
                        made_at: beginning.made_at,
                        note: beginning.note,
                        undoes: beginning.undoes,
                        roots: beginning.roots,
                        bytes_before,
                    }));
                }
                Err(WireError) if is_all => return Ok(Err(plan::NO_PLAN)),
                Err(WireError) => wanted = wanted.saturating_mul(MORE),
            }
        }
    }
}
