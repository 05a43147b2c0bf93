//! See the law of this name in `oracle/src/law.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: hermitcrab_fuzz::tell_steps(), |bytes: &[u8]| {
    hermitcrab_fuzz::tell_now_and_then();
    bisim::law::LEDGER.uphold(bytes);
});
