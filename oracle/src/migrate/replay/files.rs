//! What a world must hold so that a call can find what it found then.
//!
//! Of a workspace that is there, its files. Of one that is not, the least that
//! the records show: what was written, what was read, what was to be replaced.

mod commit;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bisim_world::protocol::{FileKind, FileSpec};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::place::{WORK, absolute};
use crate::migrate::history::{Call, Session};

/// A workspace is taken whole up to this many files and bytes.
const FILES_MAX: usize = 400;
const BYTES_MAX: u64 = 2 << 20;
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Directories of what was built or fetched; their files come back by themselves or not at all.
const LEFT_OUT: [&str; 8] = [
    ".git",
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".cache",
    "dist",
];

/// The files of a workspace, as a world takes them.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// Its files.
    pub files: Vec<FileSpec>,
    /// Whether some were left out.
    pub cut: bool,
    /// Tells one state of it from another: a commit, or a digest of the files.
    pub name: String,
}

impl Workspace {
    /// Reads a directory; links and anything else that is no file stay outside.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let mut workspace = Self::default();
        let (mut bytes, mut waiting) = (0_u64, vec![(root.to_owned(), PathBuf::new())]);
        while let Some((folder, below)) = waiting.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                workspace.cut = true;
                continue;
            };
            let mut entries: Vec<_> = entries.flatten().collect();
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let (Ok(kind), Some(name)) = (
                    entry.file_type(),
                    entry.file_name().to_str().map(str::to_owned),
                ) else {
                    workspace.cut = true;
                    continue;
                };
                if kind.is_dir() {
                    if !LEFT_OUT.contains(&name.as_str()) {
                        waiting.push((entry.path(), below.join(&name)));
                    }
                    continue;
                }
                let size = entry.metadata().map_or(u64::MAX, |seen| seen.len());
                let fits = kind.is_file()
                    && size <= FILE_BYTES_MAX
                    && bytes.saturating_add(size) <= BYTES_MAX
                    && workspace.files.len() < FILES_MAX;
                let content = if fits {
                    std::fs::read(entry.path()).ok()
                } else {
                    None
                };
                let Some(content) = content else {
                    workspace.cut = true;
                    continue;
                };
                bytes += size;
                let below = below.join(&name);
                workspace
                    .files
                    .push(spec(&below.to_string_lossy(), content));
            }
        }
        let mut hash = Sha256::new();
        for file in &workspace.files {
            let text = format!("{:?}", file.kind);
            hash.update(format!(
                "{}:{}{}:{text}",
                file.path.len(),
                file.path,
                text.len()
            ));
        }
        workspace.name = data_encoding::HEXLOWER.encode(&hash.finalize());
        workspace
    }

    /// The text of a file.
    fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find_map(|file| match &file.kind {
            FileKind::Text(text) if file.path == path => Some(text.as_str()),
            _ => None,
        })
    }
}

/// A file of a workspace.
fn spec(below: &str, content: Vec<u8>) -> FileSpec {
    FileSpec {
        path: format!("{WORK}/{below}"),
        kind: match String::from_utf8(content) {
            Ok(text) => FileKind::Text(text),
            Err(error) => FileKind::Base64(data_encoding::BASE64.encode(error.as_bytes())),
        },
        mode: None,
    }
}

/// The workspace as each session found it.
#[derive(Debug, Default)]
pub struct Workspaces {
    root: Option<PathBuf>,
    now: Arc<Workspace>,
    none: Arc<Workspace>,
    by_commit: HashMap<String, Arc<Workspace>>,
    /// How many sessions started from what.
    pub used: BTreeMap<&'static str, u64>,
}

impl Workspaces {
    /// Of the directory that is there, if there is one.
    #[must_use]
    pub fn new(root: Option<&Path>) -> Self {
        Self {
            root: root.map(Path::to_owned),
            now: Arc::new(root.map(Workspace::read).unwrap_or_default()),
            ..Self::default()
        }
    }

    /// What a session started from: the last commit before it, else what is there
    /// now; nothing, where it worked elsewhere. One that does not say where it
    /// worked is taken to have worked here.
    pub fn of(&mut self, session: &Session) -> Arc<Workspace> {
        const COMMITS_MAX: usize = 32;
        let here = self.root.clone().filter(|root| {
            let cwd = session.cwd.as_deref().map(|cwd| cwd.trim_end_matches('/'));
            cwd.is_none_or(|cwd| Path::new(cwd) == root)
        });
        let Some(root) = here else {
            *self.used.entry("what the records show").or_default() += 1;
            return Arc::clone(&self.none);
        };
        let found = commit::before(&root, session.started).and_then(|name| {
            if let Some(known) = self.by_commit.get(&name) {
                return Some(Arc::clone(known));
            }
            let workspace = Arc::new(commit::files(&root, &name)?);
            if self.by_commit.len() >= COMMITS_MAX {
                self.by_commit.clear();
            }
            self.by_commit.insert(name, Arc::clone(&workspace));
            Some(workspace)
        });
        let word = match found {
            Some(_) => "the last commit before the session",
            None => "the workspace as it is now",
        };
        *self.used.entry(word).or_default() += 1;
        found.unwrap_or_else(|| Arc::clone(&self.now))
    }
}

/// What a unit starts from, and what is known after it.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Files to be put into the world beside the workspace's.
    pub before: BTreeMap<String, String>,
    /// What is known after each call, in order.
    pub after: Vec<BTreeMap<String, String>>,
}

/// Follows calls through what is known; what a call must have found and nobody
/// wrote is put there before the first.
#[must_use]
pub fn scene(calls: &[Call], known: &BTreeMap<String, String>, workspace: &Workspace) -> Scene {
    let mut scene = Scene {
        before: known.clone(),
        after: Vec::new(),
    };
    let mut now = known.clone();
    for call in calls {
        let text = |name: &str| call.args.get(name).and_then(Value::as_str);
        let path = text("path").and_then(absolute);
        let there = |now: &BTreeMap<String, String>, path: &str| {
            now.contains_key(path) || workspace.files.iter().any(|file| file.path == path)
        };
        match (call.tool.as_str(), path) {
            ("write_file", Some(path)) => {
                if let Some(content) = text("content") {
                    now.insert(path, content.to_owned());
                }
            }
            ("read_file", Some(path)) if !there(&now, &path) => {
                if let Some(content) = read_back(call) {
                    scene.before.insert(path.clone(), content.clone());
                    now.insert(path, content);
                }
            }
            ("patch", Some(path)) => {
                if let Some(old) = text("old_string").filter(|old| !old.is_empty()) {
                    let mut content = now
                        .get(&path)
                        .cloned()
                        .or_else(|| workspace.text(&path).map(str::to_owned));
                    // Only where it worked then, and would not now.
                    let worked = !failed(call);
                    if worked
                        && !content.as_deref().is_some_and(|text| text.contains(old))
                        && !now.contains_key(&path)
                    {
                        scene.before.insert(path.clone(), old.to_owned());
                        content = Some(old.to_owned());
                    }
                    if let (Some(content), Some(new), true) = (content, text("new_string"), worked)
                    {
                        now.insert(path, content.replacen(old, new, 1));
                    }
                }
            }
            ("search_files", _) => {
                for (path, content) in found(call) {
                    if !there(&now, &path) {
                        scene.before.insert(path.clone(), content.clone());
                        now.insert(path, content);
                    }
                }
            }
            _ => {}
        }
        scene.after.push(now.clone());
    }
    scene
}

fn answer(call: &Call) -> Option<Value> {
    serde_json::from_str(call.result.as_deref()?).ok()
}

fn failed(call: &Call) -> bool {
    answer(call).is_none_or(|answer| {
        answer.get("error").is_some_and(|error| !error.is_null())
            || answer.get("success") == Some(&Value::Bool(false))
    })
}

/// A file from what reading it showed: numbered lines, blank where nothing was shown.
fn read_back(call: &Call) -> Option<String> {
    let answer = answer(call)?;
    let shown = answer.get("content")?.as_str()?;
    let total = answer.get("total_lines").and_then(Value::as_u64);
    let total = usize::try_from(total.unwrap_or_default()).ok()?.min(20_000);
    let mut lines: Vec<String> = vec![String::new(); total];
    for line in shown.split('\n') {
        let (number, text) = line.split_once('|')?;
        let place = number.trim().parse::<usize>().ok()?.checked_sub(1)?;
        if place < total
            && let Some(slot) = lines.get_mut(place)
        {
            text.clone_into(slot);
        }
    }
    Some(
        lines
            .into_iter()
            .fold(String::new(), |all, line| all + &line + "\n"),
    )
}

/// Files with the lines a search found in them.
fn found(call: &Call) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, BTreeMap<usize, String>> = BTreeMap::new();
    let answer = answer(call).unwrap_or_default();
    for found in answer
        .get("matches")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let path = found.get("path").or_else(|| found.get("file"));
        let Some(path) = path.and_then(Value::as_str).and_then(absolute) else {
            continue;
        };
        let line = found
            .get("line")
            .or_else(|| found.get("line_number"))
            .and_then(Value::as_u64);
        let line = usize::try_from(line.unwrap_or(1))
            .unwrap_or(1)
            .clamp(1, 20_000);
        let text = found
            .get("content")
            .and_then(Value::as_str)
            .unwrap_or_default();
        files.entry(path).or_default().insert(line, text.to_owned());
    }
    files
        .into_iter()
        .map(|(path, lines)| {
            let last = lines.keys().next_back().copied().unwrap_or(0);
            let text = (1..=last).fold(String::new(), |all, line| {
                all + lines.get(&line).map_or("", String::as_str) + "\n"
            });
            (path, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Workspace, scene};
    use crate::migrate::history::Call;

    fn call(tool: &str, args: Value, result: Value) -> Call {
        Call {
            id: String::new(),
            tool: tool.into(),
            args,
            result: Some(result.to_string()),
            cut: false,
        }
    }

    #[test]
    fn what_was_read_is_there_before_and_what_was_written_only_after() {
        let calls = [
            call(
                "read_file",
                json!({"path": "a.txt", "offset": 2, "limit": 1}),
                json!({"content": "2|second", "total_lines": 3}),
            ),
            call(
                "write_file",
                json!({"path": "b.txt", "content": "b"}),
                json!({"bytes_written": 1}),
            ),
            call(
                "patch",
                json!({"path": "b.txt", "old_string": "b", "new_string": "c"}),
                json!({"success": true}),
            ),
            call(
                "patch",
                json!({"path": "d.txt", "old_string": "old\n", "new_string": "new\n"}),
                json!({"success": true}),
            ),
            call(
                "patch",
                json!({"path": "e.txt", "old_string": "x", "new_string": "y"}),
                json!({"success": false, "error": "no such text"}),
            ),
        ];
        let scene = scene(&calls, &Default::default(), &Workspace::default());
        let before: Vec<_> = scene.before.into_iter().collect();
        assert_eq!(
            before,
            [
                ("/home/u/work/a.txt".to_owned(), "\nsecond\n\n".to_owned()),
                ("/home/u/work/d.txt".to_owned(), "old\n".to_owned()),
            ]
        );
        assert_eq!(scene.after[1]["/home/u/work/b.txt"], "b");
        assert_eq!(scene.after[2]["/home/u/work/b.txt"], "c");
        assert_eq!(scene.after[3]["/home/u/work/d.txt"], "new\n");
        assert!(!scene.after[4].contains_key("/home/u/work/e.txt"));
    }

    #[test]
    fn a_workspace_is_its_files_without_links_and_what_was_built() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("src")).unwrap();
        std::fs::create_dir_all(at("target/debug")).unwrap();
        std::fs::write(at("src/a.py"), "a\n").unwrap();
        std::fs::write(at("target/debug/x"), "x\n").unwrap();
        std::fs::write(at("b.bin"), [0xff_u8, 0]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        let workspace = Workspace::read(folder.path());
        let mut paths: Vec<_> = workspace
            .files
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        paths.sort_unstable();
        assert_eq!(paths, ["/home/u/work/b.bin", "/home/u/work/src/a.py"]);
        assert!(workspace.cut);
    }
}
