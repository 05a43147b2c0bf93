//! The files a patch is about, as this agent may read them, and what they
//! will hold.
//!
//! Every file is read once, before anything is decided; the new contents go
//! out together, in one call that is permitted or refused as a whole.

use std::collections::{BTreeMap, BTreeSet};

use hermitcrab_core::v4a::Operation;
use hermitcrab_sandbox::dircap::{Kind, Stat};

use super::apply::Picture;
use crate::{
    runtime::{Before, FileChange, Hands, Link, LinkLeads, Place, Stop},
    text::{fence, pytext},
    tools::{lint, read_file, write_file},
};

/// Endings of pictures; their text counts as empty.
const PICTURES: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico"];

/// Links that are followed through a picture: as many as the kernel follows.
const LINKS_MAX: usize = 40;

/// What a name stands for.
#[derive(Clone)]
enum Held {
    /// A file with this content.
    File(Vec<u8>),
    /// A link that is meant itself.
    Link(Link),
}

/// What is read under a name.
enum Read<'f> {
    /// This content.
    Content(&'f [u8]),
    /// Nothing can be.
    Nothing,
    /// Something that is not shown: a link leads to what may not be read.
    Unseen,
}

/// One file, or one link that is meant itself.
struct Slot {
    place: Place,
    disk: Option<Held>,
    now: Option<Held>,
    /// The permission bits of the file that is there.
    mode: u32,
    /// Why what is there cannot be written, if it cannot.
    shut: Option<String>,
    /// Where its content was moved from, if that was the last thing done to it.
    from: Option<String>,
    /// Whether the directory it lies in comes only with this patch.
    is_below_new: bool,
}

impl Slot {
    /// The file that is there.
    fn before(&self) -> Before {
        match &self.disk {
            Some(Held::File(content)) => Before::File(content.clone()),
            Some(Held::Link(_)) | None => Before::Nothing,
        }
    }

    /// How what is at the place becomes what is to be there, unless a move does that.
    fn changes(&self, mode: Option<u32>) -> Vec<FileChange> {
        let place = || self.place.clone();
        let goes = match (&self.disk, &self.now) {
            (Some(Held::File(old)), Some(Held::File(now))) if old == now => return Vec::new(),
            (Some(Held::Link(old)), Some(Held::Link(now))) if old.says == now.says => {
                return Vec::new();
            }
            (Some(Held::File(old)), None | Some(Held::Link(_))) => Some(FileChange::Delete {
                place: place(),
                before: old.clone(),
            }),
            (Some(Held::Link(link)), _) => Some(FileChange::RemoveLink {
                place: place(),
                says: link.says.clone(),
            }),
            (Some(Held::File(_)), Some(Held::File(_))) | (None, _) => None,
        };
        let comes = self.now.as_ref().map(|now| match now {
            Held::File(content) => FileChange::Write {
                place: place(),
                before: self.before(),
                content: content.clone(),
                mode,
            },
            Held::Link(link) => FileChange::PutLink {
                place: place(),
                says: link.says.clone(),
            },
        });
        goes.into_iter().chain(comes).collect()
    }
}

/// The files of one patch.
pub struct Files<'h, 'r> {
    hands: &'h mut Hands<'r>,
    by_name: BTreeSet<String>,
    slots: BTreeMap<String, Slot>,
    /// Files that were put somewhere: the directories above them are there for what follows.
    put: Vec<String>,
}

/// The paths that are taken as they are, links or not: to go, or to get another name, is
/// what becomes of a link and not of what it leads to.
pub fn by_name(operations: &[Operation]) -> BTreeSet<&str> {
    let mut paths = BTreeSet::new();
    for operation in operations {
        match operation {
            Operation::Delete { path } => drop(paths.insert(path.as_str())),
            Operation::Move { path, to } => paths.extend([path.as_str(), to.as_str()]),
            Operation::Add { .. } | Operation::Update { .. } => {}
        }
    }
    paths
}

/// Whether a text is asked for as it is on the disk, or as it will be.
#[derive(Clone, Copy)]
enum Side {
    Disk,
    Now,
}

impl<'h, 'r> Files<'h, 'r> {
    /// None read yet.
    pub fn new(hands: &'h mut Hands<'r>, operations: &[Operation]) -> Self {
        let by_name = by_name(operations).into_iter().map(str::to_owned).collect();
        Self {
            hands,
            by_name,
            slots: BTreeMap::new(),
            put: Vec::new(),
        }
    }

    fn slot(&mut self, path: &str) -> Result<&mut Slot, Stop> {
        let place = self.place(path)?;
        let link = match self.by_name.contains(path) && !self.slots.contains_key(&place.absolute) {
            true => self.hands.link(&place)?,
            false => None,
        };
        let Some(link) = link else {
            return self.slot_at(place);
        };
        if let LinkLeads::To(goal) = &link.leads {
            self.slot_at(goal.clone())?;
        }
        let held = Held::Link(link);
        let slot = Slot {
            disk: Some(held.clone()),
            now: Some(held),
            mode: 0,
            shut: None,
            from: None,
            is_below_new: false,
            place: place.clone(),
        };
        self.slots.insert(place.absolute.clone(), slot);
        self.slot_at(place)
    }

    /// The same of a place where no link is.
    fn slot_at(&mut self, place: Place) -> Result<&mut Slot, Stop> {
        let key = place.absolute.clone();
        if !self.slots.contains_key(&key) {
            let stat = self.hands.look(&place)?;
            let disk = match &stat {
                Some(stat) if stat.kind == Kind::File => {
                    match self.hands.read_to_change(&place, self.held()) {
                        Ok(content) => Some(Held::File(content)),
                        // A file nobody may open is none for a patch.
                        Err(
                            Stop::Missing | Stop::System(std::io::ErrorKind::PermissionDenied, _),
                        ) => None,
                        Err(stop) => return Err(stop),
                    }
                }
                // A directory is no file of a patch, and nothing is put in its place.
                Some(_) | None => None,
            };
            let slot = Slot {
                place,
                now: disk.clone(),
                disk,
                mode: stat.as_ref().map_or(0, |stat| stat.mode),
                shut: stat.as_ref().and_then(|stat| why_shut(stat, &key)),
                from: None,
                is_below_new: false,
            };
            self.slots.insert(key.clone(), slot);
        }
        self.slots
            .get_mut(&key)
            .ok_or_else(|| Stop::Broken(format!("lost the picture of `{key}`")))
    }

    /// What is read at a place, through the links of the picture.
    fn read(&self, key: &str, side: Side) -> Read<'_> {
        let mut key = key;
        for _ in 0..LINKS_MAX {
            let held = self.slots.get(key).and_then(|slot| match side {
                Side::Disk => slot.disk.as_ref(),
                Side::Now => slot.now.as_ref(),
            });
            match held {
                None => return Read::Nothing,
                Some(Held::File(content)) => return Read::Content(content),
                Some(Held::Link(link)) => match &link.leads {
                    LinkLeads::To(goal) | LinkLeads::Nowhere(Some(goal)) => key = &goal.absolute,
                    LinkLeads::Nowhere(None) => return Read::Nothing,
                    LinkLeads::Unseen => return Read::Unseen,
                },
            }
        }
        Read::Nothing
    }

    /// How many bytes are held of files.
    fn held(&self) -> usize {
        let held = self.slots.values().map(|slot| match &slot.disk {
            Some(Held::File(content)) => content.len(),
            Some(Held::Link(_)) | None => 0,
        });
        held.sum()
    }

    /// One of those that were looked at already: to say what became of it, nobody is asked.
    fn known(&mut self, path: &str) -> Option<&Slot> {
        let place = self.place(path).ok()?;
        self.slots.get(&place.absolute)
    }

    fn place(&mut self, path: &str) -> Result<Place, Stop> {
        let place = self.hands.resolve(path)?;
        if self.by_name.contains(path) {
            return self.hands.target_by_name(place);
        }
        self.hands.target(place)
    }

    fn text(&mut self, path: &str, side: Side) -> Result<Result<String, String>, Stop> {
        let expanded = read_file::expanded(self.hands, path);
        let key = self.slot(path)?.place.absolute.clone();
        let content = match self.read(&key, side) {
            _ if read_file::is_of_a_directory(path) => None,
            Read::Content(content) => Some(content),
            Read::Unseen => return Ok(Ok(String::new())),
            Read::Nothing => None,
        };
        let Some(content) = content else {
            return Ok(Err(format!("File not found: {expanded}")));
        };
        let ending = pytext::split_extension(&expanded).1.to_lowercase();
        if PICTURES.contains(&ending.as_str()) {
            return Ok(Ok(String::new()));
        }
        if read_file::is_binary(&ending, content) {
            return Ok(Err(
                "Binary file \u{2014} cannot display as text.".to_owned()
            ));
        }
        let text = String::from_utf8_lossy(content);
        let text = fence::stripped(&text);
        Ok(Ok(text
            .strip_prefix('\u{feff}')
            .unwrap_or(&text)
            .to_owned()))
    }

    /// What the operations have changed, in a fixed order.
    #[must_use]
    pub fn changes(&self) -> Vec<FileChange> {
        let mut moved: Vec<&String> = Vec::new();
        let mut changes = Vec::new();
        for slot in self.slots.values() {
            let (Some(from), None, Some(Held::File(content))) = (&slot.from, &slot.disk, &slot.now)
            else {
                continue;
            };
            // A name is given only where a directory is; a file brings its own.
            if let Some(source) = self.slots.get(from)
                && let (Some(Held::File(before)), None) = (&source.disk, &source.now)
                && source.place.dir == slot.place.dir
                && !slot.is_below_new
            {
                moved.push(from);
                changes.push(FileChange::Rename {
                    from: source.place.clone(),
                    to: slot.place.clone(),
                    before: before.clone(),
                    content: content.clone(),
                });
            }
        }
        for (key, slot) in &self.slots {
            let renamed_to = changes
                .iter()
                .any(|change| matches!(change, FileChange::Rename { to, .. } if *to == slot.place));
            if !renamed_to && !moved.contains(&key) {
                changes.extend(slot.changes(self.mode_of_moved(slot)));
            }
        }
        changes
    }

    /// Facts about what is on the disk under a name, or behind the link it is.
    fn led_to(&mut self, place: &Place) -> Result<Option<Stat>, Stop> {
        let held = self.slots.get(&place.absolute);
        match held.and_then(|slot| slot.disk.as_ref()) {
            Some(Held::Link(link)) => match &link.leads {
                LinkLeads::To(goal) => self.hands.look(&goal.clone()),
                LinkLeads::Nowhere(_) | LinkLeads::Unseen => Ok(None),
            },
            Some(Held::File(_)) | None => self.hands.look(place),
        }
    }

    /// Whether an operation before has put a file below this directory.
    fn comes_to_be(&self, directory: &str) -> bool {
        self.put.iter().any(|path| {
            path.strip_prefix(directory)
                .is_some_and(|below| below.starts_with('/'))
        })
    }

    /// The permission bits of a file that was moved to where none was, while another is put
    /// where it was.
    fn mode_of_moved(&self, slot: &Slot) -> Option<u32> {
        let source = self.slots.get(slot.from.as_ref()?)?;
        let is_moved = matches!(
            (&slot.disk, &source.disk),
            (None | Some(Held::Link(_)), Some(Held::File(_)))
        );
        is_moved.then_some(source.mode & 0o777)
    }

    /// What a check says of a path after the changes.
    pub fn checked(&mut self, path: &str) -> lint::Lint {
        let text = self.known(path).and_then(|slot| match &slot.now {
            Some(Held::File(content)) => Some(String::from_utf8_lossy(content).into_owned()),
            Some(Held::Link(_)) | None => None,
        });
        match text {
            // Whoever reads it again goes by the name as it is written.
            Some(_) if path.starts_with("~/") && lint::reads_again(path) => {
                lint::unreadable(self.hands, path)
            }
            Some(text) => lint::after(self.hands, path, None, &text, false),
            None => lint::unreadable(self.hands, path),
        }
    }

    /// What the system says of a path whose directories cannot be made.
    ///
    /// # Errors
    /// It may not be looked at.
    pub fn why_missing(&mut self, path: &str) -> Result<&'static str, Stop> {
        let place = self.hands.resolve(path)?;
        Ok(write_file::why_missing(self.hands, &place))
    }

    /// Lets the changes happen.
    ///
    /// # Errors
    /// They were refused, or could not all be made.
    pub fn commit(&mut self) -> Result<(), Stop> {
        let changes = self.changes();
        if changes.is_empty() {
            return Ok(());
        }
        self.hands.change(&changes)
    }
}

impl Picture for Files<'_, '_> {
    fn text_on_disk(&mut self, path: &str) -> Result<Result<String, String>, Stop> {
        self.text(path, Side::Disk)
    }

    fn text_now(&mut self, path: &str) -> Result<Result<String, String>, Stop> {
        self.text(path, Side::Now)
    }

    fn put(&mut self, path: &str, text: &str) -> Result<Result<(), String>, Stop> {
        let expanded = read_file::expanded(self.hands, path);
        if let Some(problem) = lint::refusal(&expanded, text) {
            return Ok(Err(problem));
        }
        if read_file::is_of_a_directory(path) {
            return Ok(Err(format!(
                "Failed to write file: {expanded}: Not a directory\n"
            )));
        }
        let slot = self.slot(path)?;
        if let Some(why) = &slot.shut {
            return Ok(Err(why.clone()));
        }
        let key = slot.place.absolute.clone();
        let old = match self.read(&key, Side::Now) {
            Read::Content(content) => Before::File(content.to_vec()),
            Read::Nothing => Before::Nothing,
            Read::Unseen => {
                return Ok(Err(format!(
                    "Failed to write file: {expanded}: it is a link to what may not be read\n"
                )));
            }
        };
        let slot = self.slot(path)?;
        slot.now = Some(Held::File(write_file::kept_form(&old, text).into_bytes()));
        slot.from = None;
        let absolute = slot.place.absolute.clone();
        self.put.push(absolute);
        Ok(Ok(()))
    }

    fn take_away(&mut self, path: &str) -> Result<(), Stop> {
        let slot = self.slot(path)?;
        slot.now = None;
        slot.from = None;
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Result<(), String>, Stop> {
        let expanded = (
            read_file::expanded(self.hands, from),
            read_file::expanded(self.hands, to),
        );
        let no_such = |what: &str| {
            Ok(Err(format!(
                "mv: cannot {what}: No such file or directory\n"
            )))
        };
        let target = self.slot(to)?.place.clone();
        let mut is_below_new = false;
        if let Some(above) = parent(&target)
            && self.hands.look(&above)?.is_none()
        {
            is_below_new = self.comes_to_be(&above.absolute);
            if !is_below_new {
                return no_such(&format!("move '{}' to '{}'", expanded.0, expanded.1));
            }
        }
        let there = self.led_to(&target)?;
        if there.as_ref().is_some_and(|stat| stat.kind != Kind::File) {
            let source = &self.slot(from)?.place;
            let is_above =
                (source.dir, source.below.parent()) == (target.dir, Some(target.below.clone()));
            let name = source.absolute.rsplit('/').next().unwrap_or_default();
            return Ok(Err(if is_above {
                let into = expanded.1.trim_end_matches('/');
                format!(
                    "mv: '{}' and '{into}/{name}' are the same file\n",
                    expanded.0
                )
            } else {
                format!("mv: '{}' is not a file name\n", expanded.1)
            }));
        }
        if read_file::is_of_a_directory(to) {
            let what = match there {
                Some(_) => format!("stat '{}'", expanded.1),
                None => format!("move '{}' to '{}'", expanded.0, expanded.1),
            };
            return Ok(Err(format!("mv: cannot {what}: Not a directory\n")));
        }
        let source = self.slot(from)?.place.clone();
        for place in [&source, &target] {
            // Its owner could open such a directory; a move does not.
            if let Some(above) = parent(place)
                && let Some(stat) = self.hands.look(&above)?
                && stat.mode & 0o200 == 0
            {
                return Ok(Err(format!(
                    "mv: cannot move '{}' to '{}': Permission denied\n",
                    expanded.0, expanded.1
                )));
            }
        }
        let source = self.slot(from)?;
        let key = source
            .from
            .clone()
            .unwrap_or_else(|| source.place.absolute.clone());
        let Some(mut held) = source.now.take() else {
            return no_such(&format!("stat '{}'", expanded.0));
        };
        source.from = None;
        if let Held::Link(link) = &mut held
            && !link.says.starts_with(b"/")
            && (source.place.dir, parent(&source.place)) != (target.dir, parent(&target))
        {
            // Seen from another directory it leads elsewhere.
            link.leads = LinkLeads::Unseen;
        }
        let slot = self.slot(to)?;
        slot.now = Some(held);
        slot.from = Some(key);
        slot.is_below_new = is_below_new;
        Ok(Ok(()))
    }
}

/// Why what is there is not written: a file marked against it, or a directory, in whose
/// place no file is put.
fn why_shut(stat: &Stat, absolute: &str) -> Option<String> {
    match stat.kind {
        Kind::Dir => Some(format!(
            "Failed to write file: {absolute}: Is a directory\n"
        )),
        Kind::File | Kind::Symlink | Kind::Special => write_file::is_shut(stat),
    }
}

/// The directory above a place; `None` for the directory a grant names itself.
fn parent(place: &Place) -> Option<Place> {
    let below = place.below.parent().filter(|below| !below.is_root())?;
    let absolute = place.absolute.rsplit_once('/')?.0.to_owned();
    Some(Place {
        dir: place.dir,
        below,
        absolute,
    })
}
