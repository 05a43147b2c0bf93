//! A file that is read piece by piece, and what becomes of it meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::symlink;
use std::time::Duration;

use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::dircap::{Content, LongFile, PIECE_BYTES};
use hermitcrab_sandbox::{DirCap, FsError};

use crate::support::{Workspace, rel, with_permit};

fn open(cap: &DirCap, path: &str, whole_max: usize) -> Result<Content, FsError> {
    let path = rel(path);
    with_permit(Verb::FsRead, &path, Digest::NONE, |permit| {
        cap.open_direct(permit, &path, whole_max)
    })
}

fn long(cap: &DirCap, path: &str) -> LongFile {
    match open(cap, path, 0).unwrap() {
        Content::Long(file) => file,
        Content::Whole(bytes) => panic!("{} bytes at once", bytes.len()),
    }
}

/// What is left of it, and how long the pieces were.
fn rest(mut file: LongFile) -> (Vec<u8>, Vec<usize>) {
    let (mut all, mut lengths) = (Vec::new(), Vec::new());
    loop {
        let piece = file.piece().unwrap();
        if piece.is_empty() {
            return (all, lengths);
        }
        all.extend_from_slice(piece);
        lengths.push(piece.len());
    }
}

fn text() -> String {
    (0..PIECE_BYTES / 4)
        .map(|number| format!("{number}\n"))
        .collect()
}

#[test]
fn the_pieces_are_the_file_and_all_but_the_last_are_full() {
    let workspace = Workspace::new();
    let text = text();
    workspace.file("f", &text);
    // Where the file system may not answer, the same is read in another thread.
    let patient = DirCap::open_ambient_dir(workspace.path(), workspace.cap.id()).unwrap();
    let patient = patient.impatient(Duration::from_secs(60));
    for cap in [&workspace.cap, &patient] {
        let (all, lengths) = rest(long(cap, "f"));
        assert_eq!(all, text.as_bytes());
        let (last, full) = lengths.split_last().unwrap();
        assert!(!full.is_empty() && full.iter().all(|length| *length == PIECE_BYTES));
        assert_eq!(*last, text.len() % PIECE_BYTES);
    }
    assert!(matches!(
        open(&workspace.cap, "f", text.len()).unwrap(),
        Content::Whole(bytes) if bytes == text.as_bytes()
    ));
}

#[test]
fn what_is_opened_is_the_one_file_up_to_the_length_it_had() {
    let workspace = Workspace::new();
    let text = text();
    workspace.file("grows", &text);
    let file = long(&workspace.cap, "grows");
    workspace.file("grows", &format!("{text}more\n"));
    assert_eq!(rest(file).0, text.as_bytes());

    workspace.file("goes", &text);
    let file = long(&workspace.cap, "goes");
    std::fs::rename(workspace.path().join("goes"), workspace.path().join("gone")).unwrap();
    workspace.file("goes", "another");
    assert_eq!(rest(file).0, text.as_bytes());

    workspace.file("shrinks", &text);
    let file = long(&workspace.cap, "shrinks");
    workspace.file("shrinks", "short");
    assert_eq!(rest(file), (b"short".to_vec(), vec![5]));
}

#[test]
fn nothing_is_opened_through_a_link_or_that_is_no_file() {
    let workspace = Workspace::new();
    workspace.file("dir/f", &text());
    symlink("dir/f", workspace.path().join("link")).unwrap();
    symlink("dir", workspace.path().join("way")).unwrap();
    for path in ["link", "way/f"] {
        let refused = open(&workspace.cap, path, 0).unwrap_err();
        assert_eq!(refused.code(), Some(DenialCode::SymlinkRefused), "{path}");
    }
    let refused = open(&workspace.cap, "dir", 0).unwrap_err();
    assert_eq!(refused.code(), Some(DenialCode::NotRegularFile));
    // A permit for one file opens no other one.
    let (permitted, wanted) = (rel("dir/other"), rel("dir/f"));
    let other = with_permit(Verb::FsRead, &permitted, Digest::NONE, |permit| {
        workspace.cap.open_direct(permit, &wanted, 0)
    });
    assert_eq!(other.unwrap_err().code(), Some(DenialCode::PermitMismatch));
}

#[test]
fn holes_are_told_and_do_not_move_what_is_read_next() {
    let workspace = Workspace::new();
    let text = text();
    workspace.file("f", &text);
    assert!(!long(&workspace.cap, "f").has_holes());
    let path = workspace.path().join("f");
    let grown = std::fs::File::options().write(true).open(&path).unwrap();
    grown.set_len(1 << 30).unwrap();
    let mut file = long(&workspace.cap, "f");
    assert!(file.has_holes());
    assert_eq!(file.stat().bytes, 1 << 30);
    assert_eq!(
        file.piece().unwrap(),
        text.as_bytes().get(..PIECE_BYTES).unwrap()
    );
    assert!(file.has_holes());
    let next = file.piece().unwrap();
    assert!(next.starts_with(text.as_bytes().get(PIECE_BYTES..).unwrap()));
}
