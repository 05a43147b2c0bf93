//! Where a command ran short of memory or room, and what gives it more.
//!
//! What it changes lies in memory at first, and takes of the command's own. The first that
//! finds too little there has the layers of all later ones in its workspace lie on disk,
//! unless somebody wants them elsewhere. It is not run again by itself: it ran, and its
//! network and its input are used.

use hermitcrab_sandbox::spawn::{Ending, Finished};

use signal_hook::consts::SIGXFSZ;

use crate::runtime::Runtime;

/// What is said where a command, or a part of it, needed more memory than it may have, or
/// what it changed more room there than there is, if that may be why it failed.
pub(super) fn ran_short(
    runtime: &Runtime,
    finished: &Finished,
    said: &[&str],
) -> Option<&'static str> {
    let short = Short::of(finished, said)?;
    let layers = if finished.confined.on_disk {
        Layers::OnDisk
    } else if !matches!(short, Short::Tmp | Short::File)
        && finished.confined.copied.is_none()
        && runtime.gives_room()
    {
        Layers::OnDiskFromNowOn
    } else {
        Layers::InMemory
    };
    Some(short.told(layers))
}

/// What there was too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Short {
    /// Of memory, and it was ended.
    Memory,
    /// Of memory, and a part of it was ended.
    MemoryOfAPart,
    /// Of room for what it changes.
    Room,
    /// Of room in its own `/tmp`.
    Tmp,
    /// A file was to be longer than all that it may change.
    File,
}

/// Where what it changes lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layers {
    InMemory,
    OnDiskFromNowOn,
    OnDisk,
}

impl Short {
    fn of(finished: &Finished, said: &[&str]) -> Option<Self> {
        match finished.ending {
            Ending::OutOfMemory => Some(Self::Memory),
            Ending::Exited(0) => None,
            Ending::Exited(_) if finished.confined.usage.out_of_memory_kills > 0 => {
                Some(Self::MemoryOfAPart)
            }
            Ending::Signalled(SIGXFSZ) | Ending::Exited(STATUS_OF_XFSZ) => Some(Self::File),
            // Not every program says which file it wrote. A disk that has no room left ends a
            // command whose layer lies there.
            Ending::Exited(_) => said.iter().find_map(|said| full(said)).map(|short| {
                if finished.confined.on_disk {
                    Self::Tmp
                } else {
                    short
                }
            }),
            _ => None,
        }
    }

    fn told(self, layers: Layers) -> &'static str {
        match (self, layers) {
            (Self::Memory, Layers::InMemory) => OUT_OF_MEMORY,
            (Self::Memory, Layers::OnDiskFromNowOn) => OUT_OF_MEMORY_ONCE,
            (Self::Memory, Layers::OnDisk) => OUT_OF_MEMORY_ALL_THE_SAME,
            (Self::MemoryOfAPart, Layers::InMemory) => SHORT_OF_MEMORY,
            (Self::MemoryOfAPart, Layers::OnDiskFromNowOn) => SHORT_OF_MEMORY_ONCE,
            (Self::MemoryOfAPart, Layers::OnDisk) => SHORT_OF_MEMORY_ALL_THE_SAME,
            (Self::Room, Layers::OnDiskFromNowOn) => SHORT_OF_ROOM_ONCE,
            (Self::Room, Layers::InMemory | Layers::OnDisk) => SHORT_OF_ROOM,
            (Self::Tmp, _) => SHORT_OF_TMP,
            (Self::File, _) => TOO_LONG,
        }
    }
}

/// Whether, and where, something said is out of room: by the first line that says so, which
/// mostly names the file.
fn full(said: &str) -> Option<Short> {
    // The second is how programs in Go say it.
    let ends = |line: &&str| line.contains(NO_ROOM) || line.contains("no space left on device");
    let line = said.lines().find(ends)?;
    Some(match line.contains("/tmp/") {
        true => Short::Tmp,
        false => Short::Room,
    })
}

const OUT_OF_MEMORY: &str = "It needed more memory than it may have and was ended. What it changes takes memory as well: \
     `config set sandbox.layers disk` keeps that on disk, and `config set limits.memory_max_mb` gives it more.";
const OUT_OF_MEMORY_ONCE: &str = "It needed more memory than it may have and was ended. What it changes takes memory as well; from \
     the next command on that is kept on disk in this workspace. If it changes much, run it again; if not, `config set \
     limits.memory_max_mb` gives it more.";
const OUT_OF_MEMORY_ALL_THE_SAME: &str = "It needed more memory than it may have and was ended, although what it changes is kept on \
     disk: `config set limits.memory_max_mb` gives it more.";

const SHORT_OF_MEMORY: &str = "A program in it was killed, because the command needed more memory than it may have \
     (`limits.memory_max_mb`). What it changes takes memory as well, unless `sandbox.layers` is \"disk\".";
const SHORT_OF_MEMORY_ONCE: &str = "A program in it was killed, because the command needed more memory than it may have \
     (`limits.memory_max_mb`). What it changes takes memory as well; from the next command on that is kept on disk in \
     this workspace. If it changes much, run it again.";
const SHORT_OF_MEMORY_ALL_THE_SAME: &str = "A program in it was killed, because the command needed more memory than it may have \
     (`limits.memory_max_mb`), although what it changes is kept on disk.";

const SHORT_OF_ROOM: &str = "What it changes is kept in memory until it is decided, and there is only so much room, for names \
     as well (`limits.changes_max_mb`, where that is less). Of a file that is changed all is kept, whatever \
     part of it changes. `config set sandbox.layers disk` keeps it on disk. (`/tmp` has room of its own: \
     `limits.tmp_max_mb`.)";
const SHORT_OF_ROOM_ONCE: &str = "What it changes was kept in memory until it is decided, and there was not room enough: of a \
     file that is changed all is kept, whatever part of it changes. From the next command on that is kept on disk in \
     this workspace, so run it again. (`/tmp` has room of its own: `limits.tmp_max_mb`.)";

const SHORT_OF_TMP: &str = "Its own `/tmp` is kept in memory, gone when it ends, and full. `config set limits.tmp_max_mb` gives it \
     more, and `limits.memory_max_mb` must then hold that as well; a cache that is used and kept (`config add-directory \
     ~/.npm`) does not lie in it.";

const TOO_LONG: &str = "It wanted a file longer than all that a command may change together, or than `ulimit -f` allowed \
     where the agent was started: `config set limits.changes_max_mb` lets a command change more.";

/// The status by which a shell tells of the signal that ends whoever wants a longer file.
const STATUS_OF_XFSZ: i32 = 128 + SIGXFSZ;

/// What programs say where nothing more fits.
const NO_ROOM: &str = "No space left on device";
