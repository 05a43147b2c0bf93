//! See the law of this name in `oracle/src/law.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    hermitcrab_fuzz::tell_now_and_then();
    bisim::law::CATALOGUE.uphold(bytes);
});
