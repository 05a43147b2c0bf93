//! See the law of this name in `oracle/src/law.rs`.
#![no_main]

use hermitcrab_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bisim::law::JOURNAL.uphold(bytes));
