//! Why git finds no repository in a workspace that outside of the agent is in one: what it
//! looks for lies where commands are not shown anything.
//!
//! That it found none is known by its words, which a command can say without git. So what is
//! told is read from the file system by then, and named only where a store of git is.

use std::{
    io::Read as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::text::visible::named;

/// What git says where neither a directory nor any above it has a `.git`.
const NONE_ABOVE: &str = "not a git repository (or any";
/// And where `.git` is a file that names a store which is not there.
const NONE_NAMED: &str = "not a git repository: ";
/// What such a file begins with.
const NAMES_A_STORE: &str = "gitdir: ";
/// Where a store has those of its linked worktrees.
const WORKTREES: &str = "worktrees";
/// The longest such file that is read.
const FILE_BYTES_MAX: u64 = 4096 + 16;

/// Why git, in what it `said`, found no repository, if that is because it begins above the
/// workspace, or because its store lies elsewhere.
pub(super) fn unfound(workspace: &Path, said: &str) -> Option<String> {
    if said.contains(NONE_NAMED) {
        let store = named_by(&workspace.join(".git"))?;
        // What is shown already is not what is lacking.
        if store.starts_with(workspace) {
            return None;
        }
        let store = named(store.to_str()?);
        return Some(format!(
            "What `.git` names lies in {store}, outside of the workspace, and commands are not shown it: \
             `hermitcrab config add-directory {store}` lets them read it from the next session on, and with \
             `hermitcrab caps grant fs.*={store}` they may change it."
        ));
    }
    if !said.contains(NONE_ABOVE) {
        return None;
    }
    let mut above = workspace.ancestors().skip(1);
    let begins = above.find(|dir| {
        let store = dir.join(".git");
        is_store(&store) || named_by(&store).is_some()
    })?;
    let begins = named(begins.to_str()?);
    Some(format!(
        "The repository begins at {begins}, above the workspace, and commands are shown no directory above that: \
         `hermitcrab --workspace {begins}` works with all of it."
    ))
}

/// The store that a `.git` which is a file names, as a whole: a linked worktree's own lies in
/// the one it shares.
fn named_by(file: &Path) -> Option<PathBuf> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file_flags = i32::try_from(flags.bits()).ok()?;
    let opened = std::fs::File::options()
        .read(true)
        .custom_flags(file_flags)
        .open(file);
    let opened = opened.ok().filter(|opened| {
        let facts = opened.metadata();
        facts.is_ok_and(|facts| facts.is_file() && facts.len() <= FILE_BYTES_MAX)
    })?;
    let mut text = String::new();
    opened.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    let named = text.lines().next()?.strip_prefix(NAMES_A_STORE)?;
    let own = file.parent()?.join(named).canonicalize().ok()?;
    let store = match own.parent().filter(|above| above.ends_with(WORKTREES)) {
        Some(above) => above.parent()?.to_owned(),
        None => own,
    };
    is_store(&store).then_some(store)
}

fn is_store(place: &Path) -> bool {
    let has = |name| place.join(name).symlink_metadata().is_ok();
    has("HEAD") && has("objects")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ABOVE: &str = "fatal: not a git repository (or any parent up to mount point /p)";
    const NAMED: &str = "fatal: not a git repository: /r/.git/worktrees/w";

    fn store(at: &Path) {
        fs::create_dir_all(at.join("objects")).unwrap();
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn a_repository_above_the_workspace_is_named_where_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let workspace = root.join("r/src/deep");
        fs::create_dir_all(&workspace).unwrap();
        assert_eq!(unfound(&workspace, ABOVE), None);
        // A directory with that name alone is none.
        fs::create_dir_all(root.join("r/.git")).unwrap();
        assert_eq!(unfound(&workspace, ABOVE), None);
        store(&root.join("r/.git"));
        let why = unfound(&workspace, ABOVE).unwrap();
        let way_out = format!("`hermitcrab --workspace {}`", root.join("r").display());
        assert!(why.contains(&way_out), "{why}");
        assert_eq!(unfound(&workspace, "fatal: bad revision"), None);
        // One in which the workspace itself begins is shown.
        assert_eq!(unfound(&root.join("r"), ABOVE), None);
    }

    #[test]
    fn the_store_of_a_worktree_and_of_a_submodule_is_named_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let main = root.join("main/.git");
        let (linked, module) = (main.join("worktrees/w"), main.join("modules/sub"));
        fs::create_dir_all(&linked).unwrap();
        let workspace = root.join("w");
        fs::create_dir_all(&workspace).unwrap();
        let names = |what: &str| {
            fs::write(workspace.join(".git"), format!("gitdir: {what}\n")).unwrap();
            unfound(&workspace, NAMED)
        };
        assert_eq!(names(linked.to_str().unwrap()), None, "no store yet");
        store(&main);
        store(&module);
        let told = |store: &Path| format!("add-directory {}`", store.display());
        let why = names(linked.to_str().unwrap()).unwrap();
        assert!(why.contains(&told(&main)), "{why}");
        let why = names("../main/.git/modules/sub").unwrap();
        assert!(why.contains(&told(&module)), "{why}");
        // What a command wrote there leads nobody to open something else.
        fs::create_dir(root.join("keys")).unwrap();
        assert_eq!(names(root.join("keys").to_str().unwrap()), None);
        fs::remove_file(workspace.join(".git")).unwrap();
        std::os::unix::fs::symlink(&main, workspace.join(".git")).unwrap();
        assert_eq!(unfound(&workspace, NAMED), None);
    }
}
