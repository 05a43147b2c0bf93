//! What the agent hears of its sandboxes.

use crate::cgroup::Limited;
use crate::confined::Confined;
use crate::step::{Step, StepError};
use crate::wire::{Reader, WireError, Writer};

/// How the command's own process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Exited(i32),
    Signalled(i32),
}

/// What the command and everything it started used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageSpec {
    pub user_us: u64,
    pub system_us: u64,
    pub peak_resident_bytes: u64,
}

/// What the agent hears about one sandbox.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// Groups were made for it, with these limits and tallies, or why not; their
    /// descriptors come along.
    Grouped(Result<(Limited, u8), String>),
    /// It was asked for, and is to have no groups.
    Ungrouped,
    /// It is being built; a descriptor of its first process comes along.
    Made {
        zygote: u32,
        init: u32,
        /// 0, or why the first process could not be moved into its groups.
        attach_errno: i32,
    },
    /// It stands; a descriptor of the process that becomes the command, the upper
    /// layers and the exchange directory come along, then what holds the layer on
    /// disk, if it has one (this is its name there), and the proxy's socket, if one
    /// was asked for.
    Ready(Confined, Option<Vec<u8>>),
    /// A step failed; nothing ran.
    Failed(StepError),
    /// The command ended and no process that it started is left.
    Ended(Ending, UsageSpec),
    /// It waited for a command too long and is gone.
    Retired,
    /// The command ended, and what it left running is being killed.
    Clearing,
}

impl Report {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Self::Ready(confined, on_disk) => {
                w.u8(0);
                confined.encode(&mut w);
                let on_disk: Vec<_> = on_disk.iter().collect();
                w.list(&on_disk, |w, name| w.bytes(name));
            }
            Self::Failed(error) => {
                w.u8(1);
                w.u8(error.step() as u8);
                w.bytes(error.on().as_bytes());
                w.i32(error.errno());
            }
            Self::Ended(ending, usage) => {
                let (tag, value) = match ending {
                    Ending::Exited(code) => (2, *code),
                    Ending::Signalled(signal) => (3, *signal),
                };
                w.u8(tag);
                w.i32(value);
                w.u64(usage.user_us);
                w.u64(usage.system_us);
                w.u64(usage.peak_resident_bytes);
            }
            Self::Made {
                zygote,
                init,
                attach_errno,
            } => {
                w.u8(4);
                w.u32(*zygote);
                w.u32(*init);
                w.i32(*attach_errno);
            }
            Self::Grouped(Ok((limited, tallies))) => {
                w.u8(6);
                w.u8(limited.bits());
                w.u8(*tallies);
            }
            Self::Grouped(Err(why)) => {
                w.u8(7);
                w.bytes(why.as_bytes());
            }
            Self::Retired => w.u8(5),
            Self::Ungrouped => w.u8(8),
            Self::Clearing => w.u8(9),
        }
        w.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let report = match r.u8()? {
            0 => Self::Ready(Confined::decode(&mut r)?, r.list(Reader::bytes)?.pop()),
            1 => {
                let step = Step::from_code(r.u8()?).ok_or(WireError)?;
                let on = String::from_utf8_lossy(&r.bytes()?).into_owned();
                Self::Failed(StepError::from_parts(step, on, r.i32()?))
            }
            2 => Self::Ended(Ending::Exited(r.i32()?), usage(&mut r)?),
            3 => Self::Ended(Ending::Signalled(r.i32()?), usage(&mut r)?),
            4 => Self::Made {
                zygote: r.u32()?,
                init: r.u32()?,
                attach_errno: r.i32()?,
            },
            5 => Self::Retired,
            6 => Self::Grouped(Ok((Limited::from_bits(r.u8()?), r.u8()?))),
            7 => Self::Grouped(Err(String::from_utf8_lossy(&r.bytes()?).into_owned())),
            8 => Self::Ungrouped,
            9 => Self::Clearing,
            _ => return Err(WireError),
        };
        r.finish()?;
        Ok(report)
    }
}

fn usage(r: &mut Reader<'_>) -> Result<UsageSpec, WireError> {
    Ok(UsageSpec {
        user_us: r.u64()?,
        system_us: r.u64()?,
        peak_resident_bytes: r.u64()?,
    })
}
