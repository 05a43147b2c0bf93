//! A view that lies in another: what is shown there is one directory, with one layer for
//! each part, and nothing of it is shown in place of something else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::symlink;

use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::DirCap;
use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::changeset::{ChangeSet, Layer};
use hermitcrab_sandbox::spawn::{Command, Finished, Step, View, ViewMode};
use support::{Workspace, dir_id, on, rel, run, text};

fn cap(workspace: &Workspace, below: &str) -> DirCap {
    DirCap::open_ambient_dir(&workspace.path().join(below), dir_id()).unwrap()
}

fn shown<'a>(workspace: &Workspace, cap: &'a DirCap, below: &str) -> View<'a> {
    View {
        dir: cap,
        at: workspace.path().join(below),
        mode: ViewMode::CopyOnWrite,
        withheld: Withheld::default(),
    }
}

fn names(set: &ChangeSet) -> Vec<String> {
    let changes = set.changes().iter();
    changes.map(|change| change.path.to_string()).collect()
}

fn step_of(ran: Result<Finished, SpawnError>) -> Step {
    match ran.unwrap_err() {
        SpawnError::Step(error) => error.step(),
        other => panic!("{other}"),
    }
}

fn tree() -> Workspace {
    let workspace = Workspace::new();
    for name in ["beside", "a/work/file", "a/work/deep/file", "a/other"] {
        workspace.file(name, "as it was\n");
    }
    workspace
}

#[test]
fn each_part_of_a_view_within_a_view_has_its_own_changes() {
    let workspace = tree();
    let (work, deep) = (cap(&workspace, "a/work"), cap(&workspace, "a/work/deep"));
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || {
            let script = "cat beside a/work/file a/work/deep/file; echo 1 > a/other; echo 2 > a/work/file; \
                          echo 3 > a/work/deep/file; echo 4 > a/new; echo 5 > a/work/new; rm -rf a/work 2>/dev/null; \
                          ls a; cat a/other";
            let mut command = workspace.command(script);
            command.views.push(shown(&workspace, &work, "a/work"));
            command.views.push(shown(&workspace, &deep, "a/work/deep"));
            let finished = run(&command).unwrap();
            let said = "as it was\nas it was\nas it was\nnew\nother\nwork\n1\n";
            assert_eq!(text(&finished), said);
            let [outer, inner, innermost] = &finished.changes[..] else {
                panic!("three views")
            };
            assert_eq!(names(outer), ["a/new", "a/other"]);
            // What was mounted keeps its name, and what is in it does not.
            assert_eq!(names(inner), ["file"], "{inner:?}");
            assert_eq!(names(innermost), ["file"], "{innermost:?}");
        });
    }
    assert_eq!(workspace.read("a/work/file"), "as it was\n");
}

#[test]
fn the_next_command_finds_nothing_of_them() {
    let workspace = tree();
    let work = cap(&workspace, "a/work");
    for _ in 0..3 {
        let mut command =
            workspace.command("cat a/work/file; echo x > a/work/file; touch a/work/new");
        command.views.push(shown(&workspace, &work, "a/work"));
        let finished = run(&command).unwrap();
        assert_eq!(text(&finished), "as it was\n");
        assert_eq!(names(&finished.changes[1]), ["file", "new"]);
        assert!(finished.changes[0].is_empty());
    }
    assert_eq!(
        text(&workspace.run("ls a/work; cat a/work/file")),
        "deep\nfile\nas it was\n"
    );
}

#[test]
fn what_is_withheld_of_either_stays_withheld() {
    let workspace = tree();
    let work = cap(&workspace, "a/work");
    let script = "cat a/other a/work/deep/file 2>&1 | grep -c 'as it was'; cat a/work/file";
    let mut command = workspace.command(script);
    command.views.push(shown(&workspace, &work, "a/work"));
    command.views[0].withheld.places.push(rel("a/other"));
    command.views[1].withheld.places.push(rel("deep"));
    assert_eq!(text(&run(&command).unwrap()), "0\nas it was\n");
}

#[test]
fn a_view_lies_in_another_only_where_it_shows_what_is_there() {
    let workspace = tree();
    let (work, other) = (cap(&workspace, "a/work"), cap(&workspace, "a"));
    let with = |views: Vec<View<'_>>| {
        let mut command: Command<'_> = workspace.command("ls a/work");
        command.views.extend(views);
        run(&command)
    };
    // Something else there; what lies in another before that; the same place twice.
    assert_eq!(
        step_of(with(vec![shown(&workspace, &other, "a/work")])),
        Step::ViewPlace
    );
    let before = vec![
        shown(&workspace, &work, "a/work"),
        shown(&workspace, &other, "a"),
    ];
    assert_eq!(step_of(with(before)), Step::ViewPlace);
    let twice = vec![
        shown(&workspace, &work, "a/work"),
        shown(&workspace, &work, "a/work"),
    ];
    assert_eq!(step_of(with(twice)), Step::ViewPlace);
    // A link in its way, by now.
    std::fs::rename(workspace.path().join("a"), workspace.path().join("moved")).unwrap();
    symlink("moved", workspace.path().join("a")).unwrap();
    let moved = with(vec![shown(&workspace, &work, "a/work")]);
    assert!(matches!(step_of(moved), Step::ViewPlace | Step::ViewSource));
}

#[test]
fn nothing_above_a_view_within_a_view_gets_another_name_with_it() {
    let workspace = tree();
    let deep = cap(&workspace, "a/work/deep");
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || {
            let script = "perl -e 'for (qw(a a/work a/work/deep)) { rename($_, \"x\") and print \"$_\\n\" }'; \
                          mv a/other b; ls . a a/work/deep";
            let mut command = workspace.command(script);
            command.views.push(shown(&workspace, &deep, "a/work/deep"));
            let finished = run(&command).unwrap();
            let left = ".:\na\nb\nbeside\n\na:\nwork\n\na/work/deep:\nfile\n";
            assert_eq!(text(&finished), left, "{layer:?}");
            let [outer, inner] = &finished.changes[..] else {
                panic!("two views")
            };
            assert_eq!(names(outer), ["b", "a/other"], "{layer:?}");
            assert!(inner.is_empty(), "{inner:?}");
        });
    }
}
