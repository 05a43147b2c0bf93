//! What the ledger needs of a disk, so that a test can pull the plug anywhere.

use std::{
    fmt,
    fs::File,
    io::{self, Write as _},
    os::{
        fd::OwnedFd,
        unix::fs::{FileExt as _, MetadataExt as _},
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, SeekFrom},
    io::Errno,
};

/// How much room is made at a time.
const ROOM_BYTES: u64 = 64 << 10;
/// More room than this was not made here; it is told from the file's holes, and not read.
const ROOM_READ_MAX: u64 = 1 << 20;

/// A file that only grows, and can be cut back after a crash.
pub trait Disk: fmt::Debug + Send {
    /// Reads from `offset`; as much as fits, nothing at the end.
    ///
    /// # Errors
    /// The disk's.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Adds bytes to the end; may take only the first of them.
    ///
    /// # Errors
    /// The disk's; some of the bytes may be there all the same.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns once everything appended survives a loss of power.
    ///
    /// # Errors
    /// The disk's; then nothing is known about what was appended.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file back to its first `bytes`, and makes that survive.
    ///
    /// # Errors
    /// The disk's.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

impl Disk for File {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::os::unix::fs::FileExt::read_at(self, into, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)?;
        self.sync_all()
    }
}

/// A ledger's file, with room kept behind what is in it.
///
/// What for: a file that gets longer with every record has its length written to
/// the file system's journal each time it is waited for, which takes longer than
/// the record. Room reads as NUL, which no record holds; it is cut off when this is
/// dropped, and by whoever opens a file that was left with some.
#[derive(Debug)]
pub struct Roomy {
    file: File,
    /// Where the next byte goes.
    end: u64,
    /// The length of the file.
    room_end: u64,
    /// Its file system counts names: there are some that say none of every file.
    counts_names: bool,
    /// Where it is looked for by whoever reads it.
    place: Option<Place>,
}

/// A name in a directory, whatever that is called by now.
#[derive(Debug)]
struct Place {
    dir: OwnedFd,
    name: &'static str,
}

impl Place {
    /// Whether this file has the name.
    fn holds(&self, file: &std::fs::Metadata) -> io::Result<bool> {
        match rustix::fs::statat(&self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok((found.st_dev, found.st_ino) == (file.dev(), file.ino())),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Roomy {
    /// Takes a file that is open for reading and writing, and not for appending,
    /// which nobody else writes.
    ///
    /// # Errors
    /// The disk's.
    pub fn of(file: File) -> io::Result<Self> {
        let mut disk = Self::seen(file)?;
        if disk.file.metadata()?.len() != disk.end {
            disk.cut(disk.end)?;
        }
        Ok(disk)
    }

    /// Takes a file to read it as it is, which may be somebody's who writes.
    ///
    /// # Errors
    /// The disk's.
    pub fn seen(file: File) -> io::Result<Self> {
        let found = file.metadata()?;
        let end = end_of_text(&file, found.len())?;
        Ok(Self {
            file,
            end,
            room_end: end,
            counts_names: found.nlink() > 0,
            place: None,
        })
    }

    /// Has it be written only while it has this name there. A file system on which it has not,
    /// though it was just opened by it, tells no files apart by their numbers.
    ///
    /// # Errors
    /// The directory's.
    pub fn named(mut self, dir: &Path, name: &'static str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(dir, flags, Mode::empty())?;
        let place = Place { dir, name };
        if place.holds(&self.file.metadata()?)? {
            self.place = Some(place);
        }
        Ok(self)
    }

    /// What there is to know of the file, if nobody else has cut it off before so many bytes.
    fn is_whole(&self, bytes: u64) -> io::Result<std::fs::Metadata> {
        let found = self.file.metadata()?;
        match found.len() < bytes {
            true => Err(lost("cut off")),
            false => Ok(found),
        }
    }

    /// How long what is in it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Makes room behind the end, as far as the disk has it: what waits for the
    /// bytes before it waits for this as well.
    fn make_room(&mut self) {
        static NOTHING: [u8; ROOM_BYTES as usize] = [0; ROOM_BYTES as usize];
        let lacking = ROOM_BYTES - self.end % ROOM_BYTES;
        let lacking = usize::try_from(lacking).unwrap_or(0);
        let made = NOTHING
            .get(..lacking)
            .and_then(|nothing| self.file.write_at(nothing, self.end).ok());
        self.room_end = self.end + made.unwrap_or(0) as u64;
    }
}

/// Somebody else did this to the file.
fn lost(what: &str) -> io::Error {
    let why = format!("it was {what} while it was written; see who did that, and begin anew");
    io::Error::other(why)
}

/// Where the last byte of so many ends that is not NUL.
fn end_of_text(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    // One byte is all there is to look at in a file that was closed as meant.
    let mut bytes = vec![0];
    while end > 0 {
        let from = end.saturating_sub(bytes.len() as u64);
        bytes.truncate(usize::try_from(end - from).unwrap_or(0));
        match file.read_exact_at(&mut bytes, from) {
            // Whoever writes it has closed it meanwhile, and cut its room off.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                end = end.saturating_sub(1).min(file.metadata()?.len());
                continue;
            }
            read => read?,
        }
        if let Some(at) = bytes.iter().rposition(|byte| *byte != 0) {
            return Ok(from + at as u64 + 1);
        }
        end = from;
        if length - end > ROOM_READ_MAX {
            end = end_of_data(file, end)?;
        }
        bytes.resize(4096, 0);
    }
    Ok(0)
}

/// Where the last data before `end` ends: what follows is a hole. As far as the file system
/// says where its holes are.
fn end_of_data(file: &File, end: u64) -> io::Result<u64> {
    let (mut at, mut last) = (0, 0);
    while at < end {
        match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) if data < end => at = data,
            Ok(_) | Err(Errno::NXIO) => return Ok(last),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(end),
            Err(errno) => return Err(errno.into()),
        }
        at = rustix::fs::seek(file, SeekFrom::Hole(at))?.max(at.saturating_add(1));
        last = at.min(end);
    }
    Ok(last)
}

impl Disk for Roomy {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let until = into.len().min(left);
        match into.get_mut(..until) {
            Some(into) => Disk::read_at(&mut self.file, offset, into),
            None => Ok(0),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is written behind the end of a file makes it as long as it was meant to be.
        self.is_whole(self.end.max(self.room_end))?;
        let taken = loop {
            match self.file.write_at(bytes, self.end) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done?,
            }
        };
        self.end = self.end.saturating_add(taken as u64);
        if self.end > self.room_end {
            self.make_room();
        }
        Ok(taken)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        let found = self.is_whole(self.end)?;
        // What is in a file without a name is on a disk and on no record.
        if self.counts_names && found.nlink() == 0 {
            return Err(lost("removed"));
        }
        match &self.place {
            Some(place) if !place.holds(&found)? => {
                Err(lost("moved, or another put in its place,"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.is_whole(bytes)?;
        self.end = bytes;
        self.room_end = bytes;
        self.file.set_len(bytes)?;
        self.file.sync_all()
    }
}

impl Drop for Roomy {
    fn drop(&mut self) {
        // One that somebody else has cut off is made no longer by that.
        let is_longer = |found: std::fs::Metadata| found.len() > self.end;
        if self.room_end > self.end && self.file.metadata().is_ok_and(is_longer) {
            // Whoever opens it next does the same.
            let _room_may_stay = self.file.set_len(self.end);
        }
    }
}

/// A disk in memory, for a session that is only imagined.
#[derive(Debug, Default)]
pub struct Memory(Vec<u8>);

impl Disk for Memory {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(from..).unwrap_or_default();
        let got = rest.len().min(into.len());
        for (to, from) in into.iter_mut().zip(rest) {
            *to = *from;
        }
        Ok(got)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.0
            .truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// A disk as a stream from some offset on.
#[derive(Debug)]
pub(super) struct From<'d> {
    disk: &'d mut dyn Disk,
    offset: u64,
}

impl<'d> From<'d> {
    pub(super) fn new(disk: &'d mut dyn Disk, offset: u64) -> Self {
        Self { disk, offset }
    }
}

impl io::Read for From<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.disk.read_at(self.offset, into)?;
        self.offset = self.offset.saturating_add(got as u64);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{File, OpenOptions},
        path::Path,
    };

    use super::{Disk, ROOM_BYTES, Roomy};

    fn opened(path: &Path) -> File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .expect("opened")
    }

    #[test]
    fn room_is_there_while_it_is_written_and_gone_when_it_is_closed() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("ledger");
        let length = || std::fs::metadata(&path).expect("there").len();
        let mut disk = Roomy::of(opened(&path)).expect("a disk");
        assert_eq!(
            (disk.append(b"one\n").expect("taken"), length()),
            (4, ROOM_BYTES)
        );
        disk.sync().expect("on the disk");
        assert_eq!(disk.append(b"two\n").expect("taken"), 4);
        assert_eq!((disk.bytes(), length()), (8, ROOM_BYTES));
        let mut into = [b'x'; 16];
        assert_eq!(disk.read_at(2, &mut into).expect("read"), 6);
        assert_eq!(&into, b"e\ntwo\nxxxxxxxxxx");
        assert_eq!(disk.read_at(99, &mut into).expect("read"), 0);
        drop(disk);
        assert_eq!(std::fs::read(&path).expect("read"), b"one\ntwo\n");
    }

    #[test]
    fn what_is_written_after_it_was_removed_is_on_no_record() {
        let dir = tempfile::tempdir().expect("directory");
        let (path, other) = (dir.path().join("ledger"), dir.path().join("other"));
        let mut disk = Roomy::of(opened(&path)).expect("a disk");
        assert_eq!(disk.append(b"one\n").expect("taken"), 4);
        disk.sync().expect("on record");
        // By another name it is there still.
        std::fs::rename(&path, &other).expect("moved");
        disk.sync().expect("on record");
        std::fs::remove_file(&other).expect("removed");
        let error = disk.sync().expect_err("gone").to_string();
        assert!(error.contains("removed"), "{error}");
    }

    #[test]
    fn what_is_written_where_nobody_looks_for_it_is_on_no_record() {
        let dir = tempfile::tempdir().expect("directory");
        let (path, other) = (dir.path().join("ledger"), dir.path().join("other"));
        let begun = || {
            let disk = Roomy::of(opened(&path)).expect("a disk");
            let mut disk = disk.named(dir.path(), "ledger").expect("a name");
            disk.append(b"one\n").expect("taken");
            disk.sync().expect("on record");
            disk
        };
        let refused = |mut disk: Roomy, why: &str| {
            let written = disk.append(b"two\n").and_then(|_| disk.sync());
            let error = written.expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        };
        let disk = begun();
        std::fs::rename(&path, &other).expect("moved");
        refused(disk, "moved");
        let disk = begun();
        std::fs::rename(&other, &path).expect("replaced");
        refused(disk, "removed");
        let disk = begun();
        std::fs::hard_link(&path, dir.path().join("kept")).expect("linked");
        std::fs::write(&other, "another").expect("written");
        std::fs::rename(&other, &path).expect("replaced");
        refused(disk, "another put in its place");
        for length in [0, 1] {
            let disk = begun();
            opened(&path).set_len(length).expect("cut off");
            refused(disk, "cut off");
            assert_eq!(opened(&path).metadata().expect("there").len(), length);
        }
        // The directory may be called what it likes.
        let disk = begun();
        let moved = dir.path().with_extension("moved");
        std::fs::rename(dir.path(), &moved).expect("moved");
        let mut disk = disk;
        disk.append(b"two\n").expect("taken");
        disk.sync().expect("on record");
        std::fs::rename(&moved, dir.path()).expect("back");
    }

    #[test]
    fn what_follows_the_text_is_told_from_holes_however_much_it_is() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("ledger");
        for text in ["", "one\n"] {
            std::fs::write(&path, text).expect("written");
            // A terabyte would be read for an hour.
            opened(&path).set_len(1 << 40).expect("holes");
            let disk = Roomy::of(opened(&path)).expect("a disk");
            assert_eq!(disk.bytes(), text.len() as u64);
            drop(disk);
            assert_eq!(std::fs::read(&path).expect("read"), text.as_bytes());
        }
        std::fs::write(&path, vec![0; 3 << 20]).expect("written");
        assert_eq!(Roomy::of(opened(&path)).expect("a disk").bytes(), 0);
    }

    #[test]
    fn room_that_is_cut_off_while_somebody_looks_is_no_error() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("ledger");
        for text in ["", "one\n", "one\ntw"] {
            std::fs::write(&path, text).expect("written");
            // As long as it was when it was looked at.
            for length in [ROOM_BYTES, text.len() as u64 + 1, text.len() as u64] {
                let end = super::end_of_text(&opened(&path), length).expect("an end");
                assert_eq!(end, text.len() as u64, "{text:?} {length}");
            }
        }
    }

    #[test]
    fn more_than_the_room_holds_is_taken_and_room_is_made_again() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("ledger");
        let mut disk = Roomy::of(opened(&path)).expect("a disk");
        let long = vec![b'x'; 100_000];
        let mut all = Vec::new();
        for _ in 0..3 {
            let taken = disk.append(&long).expect("taken");
            all.extend_from_slice(&long[..taken]);
            let length = std::fs::metadata(&path).expect("there").len();
            assert_eq!(length % ROOM_BYTES, 0);
            assert!(length > disk.bytes());
        }
        disk.cut(150_000).expect("cut");
        assert_eq!(disk.append(b"end").expect("taken"), 3);
        all.truncate(150_000);
        all.extend_from_slice(b"end");
        drop(disk);
        assert!(std::fs::read(&path).expect("read") == all);
    }

    #[test]
    fn room_that_was_left_is_cut_off_and_nothing_else() {
        for text in ["", "one\n", "one\ntw"] {
            for room in [0, 1, 4096, 70_000] {
                let dir = tempfile::tempdir().expect("directory");
                let path = dir.path().join("ledger");
                let mut left = text.as_bytes().to_vec();
                left.resize(left.len() + room, 0);
                std::fs::write(&path, left).expect("written");
                let disk = Roomy::of(opened(&path)).expect("a disk");
                assert_eq!(disk.bytes(), text.len() as u64);
                assert_eq!(std::fs::read(&path).expect("read"), text.as_bytes());
            }
        }
    }
}
