//! What a process has used of the machine.
use nix::sys::resource::{UsageWho, getrusage};

use crate::error::{AtStage, WorldError};

/// CPU time of this process and the children it has waited for.
pub(crate) fn cpu_us() -> Result<u64, WorldError> {
    let mut total = 0_i64;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who).at("measure cpu time")?;
        for time in [usage.user_time(), usage.system_time()] {
            total += time.tv_sec() * 1_000_000 + time.tv_usec();
        }
    }
    Ok(u64::try_from(total).unwrap_or(0))
}
