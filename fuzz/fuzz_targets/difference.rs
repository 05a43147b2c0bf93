//! See the law of this name in `oracle/src/law.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: hermitcrab_fuzz::tell_steps(), |bytes: &[u8]| bisim::law::DIFFERENCE.uphold(bytes));
