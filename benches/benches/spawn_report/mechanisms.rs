//! Where the time goes: one mechanism left out after another.

use std::time::Duration;

use hermitcrab_sandbox::profile::{Mechanism, MechanismSet};
use hermitcrab_sandbox::spawn::{PoolSize, Sandbox};

use crate::sheet::Line;
use crate::{Bench, Contender, fresh, in_turns};

/// Those without which a sandbox can still be built.
const LEFT_OUT: [Mechanism; 10] = [
    Mechanism::NetworkNamespace,
    Mechanism::IpcNamespace,
    Mechanism::UtsNamespace,
    Mechanism::CgroupNamespace,
    Mechanism::ControlGroups,
    Mechanism::MaskedProc,
    Mechanism::NoCapabilities,
    Mechanism::ResourceLimits,
    Mechanism::SystemCallFilter,
    Mechanism::Landlock,
];

/// Each left out in turn, beside the whole.
pub fn left_out(bench: &Bench, rounds: usize) -> Vec<Line> {
    let base = || bench.confined(&bench.cold_fresh, &["/bin/true"], true);
    let mut lines = Vec::new();
    for mechanism in LEFT_OUT {
        let without = Sandbox::builder()
            .pool(fresh(PoolSize::OFF))
            .without(MechanismSet::of([mechanism]))
            .build();
        let run: Box<dyn Fn() -> Duration + '_> =
            Box::new(|| bench.confined(&without, &["/bin/true"], true));
        let contenders: Vec<Contender<'_>> =
            vec![(format!("without {}", mechanism.as_str()), None, run)];
        lines.extend(in_turns(
            "Cold, everything fresh, with one mechanism left out, to the same with all",
            rounds,
            &base,
            contenders,
        ));
    }
    lines
}
