//! Reading files.
//!
//! It must never follow a link on its own account, nor spend more of what is held
//! than a read needs.

use std::ops::ControlFlow;

use hermitcrab_core::{authority::Verb, digest::Digest, outcome::DenialCode};
use hermitcrab_sandbox::dircap::Stat;

use super::{
    super::{
        edit::{Before, Long},
        place::Place,
        turn::Stop,
    },
    CHANGED_BYTES_MAX, FILE_BYTES_MAX, Hands,
    long::{Content, Taker},
};
use crate::digest::Running;

/// So much of the beginning of a long file is kept.
const HEAD_BYTES: usize = 64 << 10;

/// The digest of the pieces of a file, and its beginning.
#[derive(Default)]
struct Summed {
    digest: Running,
    head: Vec<u8>,
}

impl Taker for Summed {
    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        self.digest.add(piece);
        let room = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend(piece.iter().take(room));
        ControlFlow::Continue(())
    }
}

/// Facts about a file, and what it holds unless it is a directory.
type Seen = (Stat, Option<Content>);

impl Hands<'_> {
    /// A file's content. A link is followed by asking for the place it leads to.
    pub fn read(&mut self, place: &Place) -> Result<Vec<u8>, Stop> {
        self.read_at_most(place, FILE_BYTES_MAX)
    }

    /// The same of a file of which a part is to be changed, beside so many bytes of others. It
    /// may be longer, as long as that is not too much together.
    pub fn read_to_change(&mut self, place: &Place, beside: usize) -> Result<Vec<u8>, Stop> {
        let most = CHANGED_BYTES_MAX.saturating_sub(beside);
        self.read_at_most(place, most.max(FILE_BYTES_MAX))
    }

    fn read_at_most(&mut self, place: &Place, bytes_max: usize) -> Result<Vec<u8>, Stop> {
        match self.read_direct_at_most(place, bytes_max) {
            Err(stop) if stop.is(DenialCode::SymlinkRefused) => {
                let real = self.real(place)?;
                self.read_direct_at_most(&real, bytes_max)
            }
            read => read,
        }
    }

    /// Whether there is a file that is to be written anew, and what it holds as far as this
    /// agent may know: of one too long to be in memory the digest and the beginning.
    pub fn before_writing(&mut self, place: &Place, stat: Option<&Stat>) -> Result<Before, Stop> {
        if stat.is_none_or(|stat| stat.bytes <= FILE_BYTES_MAX as u64) {
            return self.before_of(place, stat);
        }
        let mut pieces = Summed::default();
        match self.open_and_pass(place, FILE_BYTES_MAX, &mut pieces) {
            Ok(Content::Whole(content)) => Ok(Before::File(content)),
            Ok(Content::Passed(_)) => Ok(Before::Long(Long {
                digest: pieces.digest.end(),
                head: pieces.head,
            })),
            Err(Stop::Missing) => Ok(Before::Nothing),
            Err(Stop::Refused { denial, .. }) if denial.code() == DenialCode::NoCap => {
                Ok(Before::Unread)
            }
            Err(stop) => Err(stop),
        }
    }

    /// A file's content as its user sees it: what an editor holds unsaved
    /// stands in for what is on the disk. Whether it may be read is decided as
    /// for the file. The pieces of one that is too long to be in memory are handed over.
    pub fn read_as_seen(&mut self, place: &Place, taker: &mut dyn Taker) -> Result<Content, Stop> {
        let content = self.open_and_pass(place, FILE_BYTES_MAX, taker)?;
        Ok(self.as_seen(place, content))
    }

    /// The same with facts about the file, for one use of what is held; `None` if
    /// there is none, or none that anybody may open. Where looks are counted, one
    /// before the read would be the use that the read is left without.
    pub fn look_and_read(
        &mut self,
        place: &Place,
        taker: &mut dyn Taker,
    ) -> Result<Option<Seen>, Stop> {
        match self.look_open_and_pass(place, FILE_BYTES_MAX, taker) {
            Ok((stat, content)) => {
                let content = content.map(|content| self.as_seen(place, content));
                Ok(Some((stat, content)))
            }
            Err(Stop::Missing | Stop::System(std::io::ErrorKind::PermissionDenied, _)) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    pub(super) fn read_direct(&mut self, place: &Place) -> Result<Vec<u8>, Stop> {
        self.read_direct_at_most(place, FILE_BYTES_MAX)
    }

    fn read_direct_at_most(&mut self, place: &Place, bytes_max: usize) -> Result<Vec<u8>, Stop> {
        self.one(Verb::FsRead, place, Digest::NONE, |dir, permit| {
            dir.read_direct(permit, &place.below, bytes_max)
        })
    }

    fn as_seen(&mut self, place: &Place, content: Content) -> Content {
        match &mut self.runtime.buffers {
            Some(port) => port
                .text(&place.absolute)
                .filter(|text| text.len() <= FILE_BYTES_MAX)
                .map_or(content, |text| Content::Whole(text.into_bytes())),
            None => content,
        }
    }
}
