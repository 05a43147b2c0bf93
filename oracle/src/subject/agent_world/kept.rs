//! What the agent of a case keeps between two starts, and what befalls it.
//!
//! Only cases that start it again keep anything. It begins as the program
//! does, by the agent's own way of beginning; here are the damage, the moment
//! it happens at, and a disk that is full when the case says so.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bisim_world::damage;
use bisim_world::protocol::{Harm, Kept, Restart, StepOutcome, StepTrace};
use hermitcrab::{
    approvals::{Desk, SharedDesk},
    audit::{self, Ledger, Opened, disk::Disk},
    state_dir::{anchor, key},
    store::{
        self, State,
        keeper::{self, Keeper, Place},
        repair,
    },
};
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::standing::{BootId, StandingId, Surroundings, WallTime};
use hermitcrab_core::time::Instant;

use super::STATE_DIR;

/// When the first session of a case begins, on the wall clock.
const FIRST_DAY_MS: u64 = 1_700_000_000_000;
/// A month and a day.
const MONTH_MS: u64 = 31 * 24 * 3_600_000;
/// What still fits on a disk that is about to be full: less than a record.
const LAST_BYTES: usize = 40;

/// What a session of the case begins with.
pub(super) struct Begun {
    pub(super) ledger: (Ledger, Opened),
    pub(super) desk: Option<SharedDesk>,
}

/// The machine of a case, as far as what is kept depends on it.
#[derive(Debug)]
pub(super) struct Surrounding {
    boot: u8,
    now: u64,
    /// Room on the ledger's disk, if it is one that fills up.
    room: Option<Arc<AtomicUsize>>,
    /// Why it did not start, in its own words.
    why_not: RefCell<String>,
}

impl Surrounding {
    pub(super) fn new() -> Self {
        Self {
            boot: 1,
            now: FIRST_DAY_MS,
            room: None,
            why_not: RefCell::default(),
        }
    }

    /// That it does not start, and why.
    pub(super) fn not_started(&self) -> StepTrace {
        StepTrace {
            text: self.why_not.borrow().clone(),
            ..StepTrace::of(StepOutcome::Refused("not-started".to_owned()))
        }
    }

    /// Begins as the program does; `None`: it does not start.
    pub(super) fn begin(
        &self,
        workspace: &Path,
        isolation: Isolation,
    ) -> Result<Option<Begun>, String> {
        let state_dir = Path::new(STATE_DIR);
        if let Some(room) = &self.room {
            let disk = Filling::open(state_dir, Arc::clone(room)).map_err(|e| e.to_string())?;
            let ledger = Ledger::on(Box::new(disk), &state_dir.join(audit::FILE_NAME))
                .map_err(|error| error.to_string())?;
            return Ok(Some(Begun { ledger, desk: None }));
        }
        let begun = match store::begin(state_dir) {
            Ok(begun) => begun,
            Err(error) => {
                self.why_not.replace(error.to_string());
                return Ok(None);
            }
        };
        let keeper = match begun.state {
            Some(state) => Keeper::open(self.place(workspace, isolation)?, state).ok(),
            None => None,
        };
        Ok(Some(Begun {
            ledger: begun.ledger,
            desk: keeper.map(Desk::shared),
        }))
    }

    /// A session is open; a disk that is to be full is full from here on.
    pub(super) fn is_open(&self) {
        if let Some(room) = &self.room {
            room.store(LAST_BYTES, Ordering::SeqCst);
        }
    }

    fn place(&self, workspace: &Path, isolation: Isolation) -> Result<Place, String> {
        let audience = keeper::audience(workspace).ok_or("the workspace has no name")?;
        Ok(Place {
            state_dir: PathBuf::from(STATE_DIR),
            workspace: workspace.display().to_string(),
            here: Surroundings {
                audience,
                // A case's directory stays where it is.
                site: None,
                boot: BootId::from_bytes([self.boot; 16]),
                now: WallTime::from_millis(self.now),
                in_boot: Instant::from_millis(self.now),
                isolation,
            },
        })
    }

    /// What happens between an end and a start; `false`: no such thing can.
    pub(super) fn happen(
        &mut self,
        restart: &Restart,
        workspace: &Path,
        isolation: Isolation,
    ) -> Result<bool, String> {
        let state_dir = Path::new(STATE_DIR);
        if let Some(damage) = restart.damage {
            let file = match damage.of {
                Kept::Answers => Some(store::FILE_NAME),
                Kept::Ledger => Some(audit::FILE_NAME),
                Kept::Key => Some(key::FILE_NAME),
                Kept::Anchor => Some(anchor::FILE_NAME),
                Kept::Machine => None,
            };
            let done = match (file, damage.how) {
                (Some(audit::FILE_NAME), Harm::Full) => {
                    self.room = Some(Arc::new(AtomicUsize::new(usize::MAX)));
                    true
                }
                (Some(name), how) => {
                    let withdraw = || self.withdraw(workspace, isolation).map_err(Trouble);
                    damage::apply::<Trouble>(&state_dir.join(name), how, withdraw)
                        .map_err(|trouble| trouble.0)?
                }
                (None, how) => self.machine(how),
            };
            if !done {
                return Ok(false);
            }
        }
        if restart.repair {
            repair::repair(state_dir, 1).map_err(|error| error.to_string())?;
        }
        Ok(true)
    }

    /// What befell the machine at a start that is over.
    pub(super) fn follow(&mut self, restart: &Restart) {
        if let Some(damage) = restart.damage.filter(|damage| damage.of == Kept::Machine) {
            self.machine(damage.how);
        }
    }

    /// What befalls the machine; `false`: no such thing can.
    fn machine(&mut self, how: Harm) -> bool {
        match how {
            Harm::Rebooted => self.boot = self.boot.wrapping_add(1),
            Harm::MonthLater => self.now = self.now.saturating_add(MONTH_MS),
            Harm::Missing
            | Harm::Empty
            | Harm::HalfGone
            | Harm::CutOff
            | Harm::LastLineGone
            | Harm::BitsFlipped
            | Harm::OpenToAll
            | Harm::Linked
            | Harm::Directory
            | Harm::Withdrawn
            | Harm::RolledBack
            | Harm::Full => return false,
        }
        true
    }

    /// The person takes back every answer that is kept.
    pub(super) fn withdraw(&self, workspace: &Path, isolation: Isolation) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let state = State::open(Path::new(STATE_DIR)).map_err(|error| said(&error))?;
        let place = self.place(workspace, isolation)?;
        let mut keeper = Keeper::open(place, state).map_err(|error| said(&error))?;
        let kept: Vec<StandingId> = keeper.live().map(|(standing, _)| standing.id).collect();
        for id in kept {
            keeper.revoke(id).map_err(|error| said(&error))?;
        }
        Ok(())
    }
}

struct Trouble(String);

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// A file on a disk that takes only so much more.
#[derive(Debug)]
struct Filling {
    file: File,
    room: Arc<AtomicUsize>,
}

impl Filling {
    fn open(state_dir: &Path, room: Arc<AtomicUsize>) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(state_dir.join(audit::FILE_NAME))?;
        Ok(Self { file, room })
    }
}

impl Disk for Filling {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        Disk::read_at(&mut self.file, offset, into)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.load(Ordering::SeqCst);
        let fits = bytes.get(..bytes.len().min(room)).unwrap_or_default();
        if fits.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = Disk::append(&mut self.file, fits)?;
        self.room
            .store(room.saturating_sub(taken), Ordering::SeqCst);
        Ok(taken)
    }

    fn sync(&mut self) -> io::Result<()> {
        Disk::sync(&mut self.file)
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        Disk::cut(&mut self.file, bytes)
    }
}
