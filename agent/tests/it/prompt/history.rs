//! What was typed at earlier prompts.

use std::{fs, os::unix::fs::DirBuilderExt as _, path::PathBuf};

use super::{settled, start};
use crate::support::home::Home;

/// A home with a directory for what is kept, and the place of the history in it.
fn with_state() -> (Home, PathBuf) {
    let home = settled("");
    let mut make = fs::DirBuilder::new();
    make.recursive(true).mode(0o700);
    make.create(home.state("")).unwrap();
    let history = home.state("history");
    (home, history)
}

#[test]
fn what_lies_in_its_place_and_is_no_file_holds_nobody_up_and_goes_aside() {
    for lies in ["pipe", "link", "long"] {
        let (home, history) = with_state();
        match lies {
            "pipe" => {
                let mode = rustix::fs::Mode::RWXU;
                rustix::fs::mkfifoat(rustix::fs::CWD, &history, mode).unwrap();
            }
            "link" => std::os::unix::fs::symlink("/dev/zero", &history).unwrap(),
            _ => {
                let file = fs::File::create(&history).unwrap();
                let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
                file.set_permissions(own).unwrap();
                file.set_len(1 << 30).unwrap();
            }
        }
        let mut pty = start(&home);
        let shown = pty.shown().replace('\n', "");
        assert!(
            shown.contains("earlier lines are not known"),
            "{lies}: {shown}"
        );
        pty.keys("help mode\r");
        // The prompt from before is one as well, and what is typed between two is lost.
        pty.sees("approve_all");
        pty.prompt();
        pty.keys("\u{4}");
        assert!(pty.ended().success());
        if lies != "long" {
            let told = home.ok(&["doctor", "--repair"]);
            assert!(told.contains("set `history` aside"), "{told}");
            assert!(fs::symlink_metadata(&history).is_err());
        }
    }
}

#[test]
fn a_line_that_draws_is_not_brought_back() {
    let (home, history) = with_state();
    let odd = "!echo \u{1b}]0;title\u{7}\u{1b}[2J\u{202e}x";
    fs::write(&history, format!("#V2\nhelp undo\n{odd}\n")).unwrap();
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&history, own).unwrap();
    let mut pty = start(&home);
    // The newest line is not the one that draws.
    pty.keys("\u{1b}[A");
    pty.sees("> help undo");
    pty.keys("\u{15}\u{1b}[200~!echo \u{7}pasted\u{1b}[201~\r");
    pty.sees("pasted\n");
    pty.prompt();
    pty.keys("help mode\r");
    pty.prompt();
    pty.keys("\u{4}");
    assert!(pty.ended().success());
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    assert!(
        !raw.contains("\u{1b}]0;title") && !raw.contains('\u{202e}'),
        "{raw:?}"
    );
    let kept = fs::read_to_string(&history).unwrap();
    assert!(
        kept.contains("help mode") && kept.contains("help undo"),
        "{kept:?}"
    );
    assert!(!kept.contains(['\u{7}', '\u{202e}', '\u{1b}']), "{kept:?}");
}

#[test]
fn what_is_pasted_draws_nothing_and_what_it_reads_is_said() {
    let (home, _) = with_state();
    let mut pty = start(&home);
    pty.keys("\u{1b}[200~!true a\u{7}\u{202e}b\u{1b}[201~");
    pty.sees("!true a\u{2407}b");
    pty.keys("\r");
    let shown = pty.sees("it reads").replace('\n', "");
    assert!(shown.contains("`!true a\\u{7}\\u{202e}b`"), "{shown}");
    pty.prompt();
    let raw = String::from_utf8_lossy(&pty.raw).into_owned();
    assert!(
        !raw.contains("a\u{7}") && !raw.contains('\u{202e}'),
        "{raw:?}"
    );
}
