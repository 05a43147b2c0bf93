//! Work on a repository: what is changed is looked at, kept, parted, brought together,
//! put aside and taken back. What Hermes or the agent asks about (throwing work away,
//! settings and programs of git) is none of it.

use bisim_world::protocol::Step;
use serde_json::json;

use super::{
    draw::Draw,
    errands::{Files, call},
    text::word,
};

/// Moments are told once, so that what is kept has the same name each time.
const MOMENT: &str =
    "export GIT_AUTHOR_DATE=2026-02-03T04:05:06Z GIT_COMMITTER_DATE=2026-02-03T04:05:06Z";

/// The files that are changed; the template's repository holds them.
const NAMES: [&str; 4] = ["file1", "docs/note1.md", "docs/note2.md", "poem.txt"];

/// Looks that change nothing.
const LOOKS: &[&str] = &[
    "git status",
    "git status -sb",
    "git log --oneline | head -5",
    "git log --oneline --graph --all | head -12",
    "git log -2 --stat",
    "git log -p -1",
    "git log --format='%h %an %s' -3 -- docs",
    "git diff",
    "git diff --stat",
    "git diff --cached",
    "git diff HEAD~1 --name-status",
    "git diff --check",
    "git show --stat HEAD",
    "git show HEAD:file1",
    "git show v1 --format=%s -s",
    "git branch -a",
    "git branch --show-current",
    "git stash list",
    "git stash show -p",
    "git blame file1",
    "git ls-files | head -20",
    "git ls-files -u",
    "git rev-parse HEAD",
    "git rev-parse --show-toplevel --abbrev-ref HEAD",
    "git describe --tags",
    "git shortlog -sn HEAD",
    "git grep -n note",
    "git reflog | head -4",
    "git merge-base HEAD feature",
    "git --no-pager diff HEAD | grep '^[+-]'",
    "git check-ignore -v build/x.log",
    "git remote -v",
    "cd docs && git status -s . && cd ..",
];

/// A history that grows, parts and comes together.
pub fn versions(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let (one, two) = (word(draw), word(draw));
    files.push((
        "poem.txt".to_owned(),
        format!("{one}\n{two}\nthree\nfour\nfive\n"),
    ));
    let mut steps = vec![shell(MOMENT)];
    if draw.chance(30) {
        conflict(draw, &mut steps);
    }
    let many = steps.len() + 4 + draw.below(9);
    while steps.len() < many {
        let name = draw.one(&NAMES);
        match draw.below(12) {
            0..=3 => steps.push(shell(draw.one(LOOKS))),
            4 | 5 => steps.push(change(draw, name)),
            6 | 7 => steps.push(keep(draw, name)),
            8 => steps.push(part(draw)),
            9 => steps.push(together(draw)),
            10 => steps.push(aside(draw, name)),
            _ => steps.push(call("read_file", json!({ "path": name }))),
        }
    }
    steps
}

fn shell(command: &str) -> Step {
    call("terminal", json!({ "command": command }))
}

/// A file is changed, by a tool or by the shell.
fn change(draw: &mut Draw, name: &str) -> Step {
    let (one, two) = (word(draw), word(draw));
    match draw.below(6) {
        0 => call(
            "write_file",
            json!({"path": name, "content": format!("{one}\n{two}\nthree\n")}),
        ),
        1 => call(
            "patch",
            json!({
                "mode": "replace", "path": name,
                "old_string": draw.one(&["three", "v1", "note 1", "uncommitted"]), "new_string": one,
            }),
        ),
        2 => shell(&format!("echo '{one} {two}' >> {name}")),
        3 => shell(&format!("sed -i '1s/.*/{one}/' {name}")),
        4 => shell(&format!(
            "printf '{one}\\n{two}\\n' > {name}; git diff --stat"
        )),
        _ => shell(&format!(
            "mkdir -p lib && echo '{one}' > lib/{two}.txt && git status -s lib"
        )),
    }
}

/// What is changed is kept, or is no longer about to be.
fn keep(draw: &mut Draw, name: &str) -> Step {
    let (one, two) = (word(draw), word(draw));
    shell(&match draw.below(13) {
        0 | 1 => format!("git add -A && git commit -m '{one} the {two}'"),
        2 => format!("git commit -am '{one}: {two}'"),
        3 => format!("git commit -q -m '{one}' -m 'and {two}' -- {name}"),
        4 => format!("git add {name} && git status -s"),
        5 => {
            "git add -u; git commit --amend --no-edit | tail -2; git log -1 --format=%s".to_owned()
        }
        6 => format!(
            "git add -A && git commit -qF - <<'END'\n{one}\n\n- the {two}\nEND\ngit log -1 --format=%B"
        ),
        7 => format!("git restore --staged {name}; git status -s"),
        8 => format!("git mv {name} {name}.{one} && git status -s"),
        9 => format!("git rm -q --cached {name}; git status -s"),
        10 => "git reset --soft HEAD~1 && git status -s".to_owned(),
        11 => {
            format!("git tag {one}; git tag -l; git tag -am '{two}' {two}; git cat-file -t {two}")
        }
        _ => "git commit -m nothing".to_owned(),
    })
}

/// Work goes on in another place.
fn part(draw: &mut Draw) -> Step {
    let one = word(draw);
    shell(&match draw.below(8) {
        0 | 1 => format!("git checkout -b {one}"),
        2 => format!("git switch -c {one}"),
        3 => "git switch -".to_owned(),
        4 => "git checkout main".to_owned(),
        5 => "git checkout -q feature && git log -1 --format=%s".to_owned(),
        6 => format!("git branch {one} && git branch -m {one} {one}-2 && git branch"),
        _ => "git checkout -q v1 2>&1; git status | head -2".to_owned(),
    })
}

/// What was parted comes together.
fn together(draw: &mut Draw) -> Step {
    let from = draw.one(&["main", "feature", "-", "v1"]);
    shell(&match draw.below(9) {
        0 | 1 => format!("git merge {from} -m 'bring {from}'"),
        2 => format!("git merge --no-ff --no-edit {from} 2>&1 | tail -3"),
        3 => format!("git rebase {from}"),
        4 => format!("git cherry-pick {from} 2>&1 | head -3"),
        5 => "git revert --no-edit HEAD".to_owned(),
        6 => "git merge --abort; git rebase --abort; git cherry-pick --abort; git status -sb"
            .to_owned(),
        7 => "git diff HEAD~1 > change.patch; git apply -R --check change.patch && echo applies"
            .to_owned(),
        _ => "git add -A && GIT_EDITOR=true git rebase --continue 2>&1 | tail -1".to_owned(),
    })
}

/// Work is put aside and taken up again.
fn aside(draw: &mut Draw, name: &str) -> Step {
    let one = word(draw);
    shell(&match draw.below(7) {
        0 | 1 => "git stash".to_owned(),
        2 => format!("git stash push -u -m {one}"),
        3 => "git stash pop".to_owned(),
        4 => "git stash apply 2>&1 | tail -4".to_owned(),
        5 => format!("git stash push -q -- {name}; git status -s; git stash pop -q"),
        _ => "git stash drop".to_owned(),
    })
}

/// Two changes of one line meet, and somebody says which it is.
fn conflict(draw: &mut Draw, steps: &mut Vec<Step>) {
    let (one, two) = (word(draw), word(draw));
    steps.push(shell(
        "git add -A && git commit -qm work && git checkout -q -b theirs",
    ));
    steps.push(shell(&format!(
        "sed -i 's/three/{one}/' poem.txt && git commit -qam theirs"
    )));
    steps.push(shell(&format!(
        "git checkout -q main && sed -i 's/three/{two} too/' poem.txt && git commit -qam ours"
    )));
    steps.push(shell(draw.one(&[
        "git merge theirs",
        "git rebase theirs",
        "git cherry-pick theirs",
        "git merge -q theirs; git diff --name-only --diff-filter=U",
    ])));
    steps.push(call("read_file", json!({"path": "poem.txt"})));
    match draw.below(5) {
        0 => steps.push(call(
            "write_file",
            json!({"path": "poem.txt", "content": format!("{one}\n{two}\n")}),
        )),
        1 => steps.push(call(
            "patch",
            json!({
                "mode": "replace", "path": "poem.txt",
                "old_string": format!("{two} too\n=======\n{one}\n"), "new_string": format!("{one} and {two}\n"),
            }),
        )),
        2 => steps.push(shell("git checkout --theirs poem.txt && cat poem.txt")),
        3 => steps.push(shell("sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' poem.txt; cat poem.txt")),
        _ => steps.push(call(
            "search_files",
            json!({"pattern": "<<<<<<<", "path": "/home/u/proj"}),
        )),
    }
    steps.push(shell(draw.one(&[
        "git add poem.txt && git commit --no-edit && git log --oneline --graph | head -4",
        "git diff --check; git add poem.txt; GIT_EDITOR=true git rebase --continue",
        "git commit -am resolved; git status",
        "git merge --abort; git status -s; cat poem.txt",
    ])));
}
