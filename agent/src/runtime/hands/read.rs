//! Reading files.
//!
//! It must never follow a link on its own account, nor spend more of what is held
//! than a read needs.

use hermitcrab_core::{authority::Verb, digest::Digest, outcome::DenialCode};
use hermitcrab_sandbox::dircap::Stat;

use super::{
    super::{place::Place, turn::Stop},
    FILE_BYTES_MAX, Hands,
    long::{Content, Taker},
};

/// Facts about a file, and what it holds unless it is a directory.
type Seen = (Stat, Option<Content>);

impl Hands<'_> {
    /// A file's content. A link is followed by asking for the place it leads to.
    pub fn read(&mut self, place: &Place) -> Result<Vec<u8>, Stop> {
        match self.read_direct(place) {
            Err(stop) if stop.is(DenialCode::SymlinkRefused) => {
                let real = self.real(place)?;
                self.read_direct(&real)
            }
            read => read,
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
        self.one(Verb::FsRead, place, Digest::NONE, |dir, permit| {
            dir.read_direct(permit, &place.below, FILE_BYTES_MAX)
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
