//! What held one command, as told by the process that built its sandbox.
//!
//! What for: the answer to "what was enforced?" belongs to each command, not
//! to the machine: groups may be full, a kernel feature may be switched off
//! between two commands. It must never list what was not applied.

use crate::cgroup::{GroupUsage, Limited};
use crate::mechanism::{Mechanism, MechanismSet};
use crate::wire::{Reader, WireError, Writer};

/// What held one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confined {
    /// The mechanisms that were applied.
    pub by: MechanismSet,
    /// Which limits hold for the command as a whole.
    pub limited: Limited,
    /// What Landlock forbids, by its version; 0 for nothing.
    pub landlock_version: u8,
    /// Why its copy-on-write views are copies, if no overlay was mounted.
    pub copied: Option<String>,
    /// Why it had a stranger's rights to a directory it may write, if it had: its owners
    /// could not be translated, and it was not copied either.
    pub strange: Option<String>,
    /// Whether the layers of its views lay on disk, and not in memory.
    pub on_disk: bool,
    /// Why something is missing, one sentence each.
    pub missing: Vec<String>,
    /// What the command used, once it has ended.
    pub usage: GroupUsage,
}

impl Confined {
    /// Whether every mechanism commands are refused without was applied.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        Mechanism::ALL
            .into_iter()
            .filter(|mechanism| mechanism.is_mandatory())
            .all(|mechanism| self.by.contains(mechanism))
    }

    /// Why something is missing, if a reason was told under this name.
    pub(crate) fn why(&self, name: &str) -> Option<&str> {
        self.missing
            .iter()
            .find_map(|why| why.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Takes down whether a mechanism that commands run without was applied, or why not.
    pub(crate) fn note(&mut self, mechanism: Mechanism, applied: &Result<(), String>) {
        match applied {
            Ok(()) => self.by.insert(mechanism),
            Err(why) => self.missing.push(format!("{}: {why}", mechanism.as_str())),
        }
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u32(self.by.bits());
        w.u8(self.limited.bits());
        w.u8(self.landlock_version);
        let copied: Vec<_> = self.copied.iter().collect();
        w.list(&copied, |w, why| w.bytes(why.as_bytes()));
        let strange: Vec<_> = self.strange.iter().collect();
        w.list(&strange, |w, why| w.bytes(why.as_bytes()));
        w.u8(u8::from(self.on_disk));
        w.list(&self.missing, |w, why| w.bytes(why.as_bytes()));
        w.u64(self.usage.out_of_memory_kills);
        w.u64(self.usage.memory_peak_bytes.unwrap_or(u64::MAX));
        w.u64(self.usage.refused_forks);
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            by: MechanismSet::from_bits(r.u32()?).ok_or(WireError)?,
            limited: Limited::from_bits(r.u8()?),
            landlock_version: r.u8()?,
            copied: words(r)?.pop(),
            strange: words(r)?.pop(),
            on_disk: r.u8()? == 1,
            missing: words(r)?,
            usage: GroupUsage {
                out_of_memory_kills: r.u64()?,
                memory_peak_bytes: Some(r.u64()?).filter(|bytes| *bytes != u64::MAX),
                refused_forks: r.u64()?,
            },
        })
    }
}

fn words(r: &mut Reader<'_>) -> Result<Vec<String>, WireError> {
    r.list(|r| Ok(String::from_utf8_lossy(&r.bytes()?).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_back() {
        let confined = Confined {
            by: MechanismSet::of([Mechanism::Landlock, Mechanism::PidNamespace]),
            limited: Limited {
                memory: true,
                cpu: false,
                processes: true,
                kill: true,
                swap: true,
            },
            landlock_version: 7,
            copied: Some("asked for".to_owned()),
            strange: Some("too big".to_owned()),
            on_disk: true,
            missing: vec!["no reason".to_owned()],
            usage: GroupUsage {
                out_of_memory_kills: 2,
                memory_peak_bytes: None,
                refused_forks: 3,
            },
        };
        let mut writer = Writer::default();
        confined.encode(&mut writer);
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!(Confined::decode(&mut reader), Ok(confined));
        assert_eq!(reader.finish(), Ok(()));
    }
}
