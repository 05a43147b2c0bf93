//! Whom a file's access list (a POSIX ACL) lets read it.
//!
//! A copy that root makes has no such list, only permission bits, and these say with a
//! list what it grants at most. So what a list keeps from the command must not be in the
//! copy. Only who may read is asked here: what may be changed is decided elsewhere.

use rustix::fs::Stat;

/// Where the kernel shows it.
pub(super) const NAME: &[u8] = b"system.posix_acl_access";
const VERSION: u32 = 2;

// Kinds of entries, see linux/posix_acl.h.
const USER: u16 = 0x02;
const OWN_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// Whether it keeps one of these permissions from this user of this one group, who is
/// not the owner. A list that cannot be read keeps everything.
pub(super) fn keeps(list: &[u8], stat: &Stat, (user, group): (u32, u32), needed: u16) -> bool {
    let Some(entries) = entries(list) else {
        return true;
    };
    let first = |wanted: u16| entries.iter().find(|(tag, ..)| *tag == wanted);
    let mask = first(MASK).map_or(0o7, |(_, may, _)| *may);
    let lets = |may: u16| may & needed == needed;
    if let Some((_, may, _)) = entries
        .iter()
        .find(|(tag, _, id)| *tag == USER && *id == user)
    {
        return !lets(may & mask);
    }
    let mut groups = entries.iter().filter(|(tag, _, id)| match *tag {
        OWN_GROUP => stat.st_gid == group,
        GROUP => *id == group,
        _ => false,
    });
    let mut is_member = false;
    if groups.any(|(_, may, _)| {
        is_member = true;
        lets(may & mask)
    }) {
        return false;
    }
    is_member || first(OTHERS).is_none_or(|(_, may, _)| !lets(*may))
}

/// Kind, permissions and id of each.
fn entries(list: &[u8]) -> Option<Vec<(u16, u16, u32)>> {
    let (version, rest) = list.split_first_chunk()?;
    let (entries, left) = rest.as_chunks::<8>();
    if u32::from_le_bytes(*version) != VERSION || !left.is_empty() {
        return None;
    }
    let entry = |bytes: &[u8; 8]| {
        let [tag, tag_high, may, may_high, id @ ..] = *bytes;
        (
            u16::from_le_bytes([tag, tag_high]),
            u16::from_le_bytes([may, may_high]),
            u32::from_le_bytes(id),
        )
    };
    Some(entries.iter().map(entry).collect())
}
