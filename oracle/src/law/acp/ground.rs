//! What a conversation stands on: a directory, a runtime for each session of
//! it, and a model that proposes what its user's words spell out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hermitcrab::acp::{Ground as Place, Opened, Opener, Service};
use hermitcrab::ambient::BootClock;
use hermitcrab::model::{
    Backend, Message, ModelError, ModelPort, ModelReply, ModelRequest, ProposedCall,
};
use hermitcrab::ports::UserPort;
use hermitcrab::runtime::{GrantWords, Runtime, RuntimeConfig};
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::Asking;
use hermitcrab_sandbox::{SpawnerProgram, dircap::TEMPORARY_PREFIX};
use serde_json::Value;

/// Longer than anything takes: a silent user is called off, not waited for.
const ASK_WITHIN: Duration = Duration::from_secs(600);
const MODEL: &str = "m";
/// What lies beside the workspace, and must stay as it is.
const BESIDE: [&str; 3] = ["home", "state", "w"];

/// A file's text, or that there is none.
pub type Text = Option<String>;

/// The directory.
pub struct Ground {
    dir: tempfile::TempDir,
    root: PathBuf,
}

impl Ground {
    pub fn new(files: &[(&str, &str)]) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("no directory: {error}");
        // Not in memory below `/dev`: what lies there is sensitive by its place.
        let dir = tempfile::tempdir().map_err(failed)?;
        let root = dir.path().canonicalize().map_err(failed)?;
        for name in BESIDE {
            std::fs::create_dir(root.join(name)).map_err(failed)?;
        }
        let ground = Self { dir, root };
        for (name, text) in files {
            ground.save(name, text)?;
        }
        Ok(ground)
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.join("w")
    }

    /// The user saves a file.
    pub fn save(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.workspace().join(name);
        let parent = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| format!("the user cannot save `{name}`: {error}"))
    }

    /// The same while calls are at work: what one of them is about to put in the place of a
    /// file has a name of its own until it does.
    pub fn texts_so_far(&self) -> Result<BTreeMap<String, String>, String> {
        self.texts_but(|name| {
            let name = name.rsplit('/').next().unwrap_or(name);
            name.starts_with(TEMPORARY_PREFIX)
        })
    }

    /// Every file of the workspace; an error if something lies beside it.
    pub fn texts(&self) -> Result<BTreeMap<String, String>, String> {
        self.texts_but(|_| false)
    }

    fn texts_but(
        &self,
        is_left_out: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, String>, String> {
        let mut names = names(self.dir.path())?;
        names.sort();
        if names != BESIDE || !self::names(&self.root.join("home"))?.is_empty() {
            return Err(format!(
                "something was written outside the workspace: {names:?}"
            ));
        }
        let mut texts = BTreeMap::new();
        let mut left = vec![String::new()];
        while let Some(dir) = left.pop() {
            for name in self::names(&self.workspace().join(&dir))? {
                let name = format!("{dir}{name}");
                if is_left_out(&name) {
                    continue;
                }
                let path = self.workspace().join(&name);
                if path.is_dir() {
                    left.push(format!("{name}/"));
                } else {
                    let text = std::fs::read_to_string(&path)
                        .map_err(|error| format!("`{name}` cannot be read: {error}"))?;
                    texts.insert(name, text);
                }
            }
        }
        Ok(texts)
    }

    pub fn service(&self) -> Service {
        let home = self.root.join("home");
        let opened = AtomicU64::new(1);
        let opener: Opener = Arc::new(move |place, user| {
            let number = opened.fetch_add(1, Ordering::Relaxed);
            open(place, &home, number, user)
        });
        Service {
            opener,
            ask_within: ASK_WITHIN,
            words_within: ASK_WITHIN,
            state_dir: self.root.join("state"),
        }
    }
}

fn names(dir: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("`{}` cannot be listed: {error}", dir.display());
    std::fs::read_dir(dir)
        .map_err(failed)?
        .map(|entry| {
            Ok(entry
                .map_err(failed)?
                .file_name()
                .to_string_lossy()
                .into_owned())
        })
        .collect()
}

fn open(
    place: &Place,
    home: &Path,
    session: u64,
    user: Box<dyn UserPort>,
) -> Result<Opened, String> {
    let config = RuntimeConfig {
        workspace: place.cwd.clone(),
        home: home.to_owned(),
        state_dir: place.dir.clone(),
        common_dir: place.dir.clone(),
        protected: Vec::new(),
        tools: hermitcrab::tools::run,
        env: Vec::new(),
        // Nothing here is isolated, and nothing here is run.
        git_settings: String::new(),
        isolation: Isolation::Isolated,
        asking: Asking::Prompt,
        session,
        spawner: SpawnerProgram::Own,
        umask: 0o022,
    };
    let mut runtime =
        Runtime::open(config, user, Box::new(BootClock)).map_err(|error| error.to_string())?;
    let workspace = place.cwd.to_string_lossy().into_owned();
    let furnish = move |runtime: &mut Runtime| {
        let agent = runtime.first_agent();
        for (verb, on) in [
            ("fs.read", &*workspace),
            ("fs.list", &*workspace),
            ("model.send", MODEL),
        ] {
            runtime
                .grant(agent, &GrantWords::new(verb, on))
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    furnish(&mut runtime)?;
    Ok(Opened {
        runtime,
        backend: Backend {
            model: MODEL.to_owned(),
            place: "here".to_owned(),
            port: Box::new(Script),
        },
        furnish: Box::new(furnish),
        picker: None,
        proved: Isolation::Isolated,
        floor: Asking::ApproveAll,
        undo: Box::new(|_, _| "nothing is taken back here".to_owned()),
    })
}

/// Proposes what the user's last words spell out, a list of calls a turn.
struct Script;

impl ModelPort for Script {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        let from = request.messages.iter().rposition(is_user).unwrap_or(0);
        let turn = request.messages.get(from..).unwrap_or_default();
        let script: Vec<Vec<(String, Value)>> = match turn.first() {
            Some(Message::User(words)) => serde_json::from_str(words).unwrap_or_default(),
            _ => Vec::new(),
        };
        let is_said = |message: &&Message| matches!(message, Message::Assistant { .. });
        let said = turn.iter().filter(is_said).count();
        let calls = script.get(said).into_iter().flatten().enumerate();
        let calls: Vec<ProposedCall> = calls
            .map(|(place, (tool, arguments))| ProposedCall {
                id: format!("c{place}"),
                tool: tool.clone(),
                arguments: arguments.to_string(),
            })
            .collect();
        Ok(ModelReply {
            text: if calls.is_empty() { "done" } else { "" }.to_owned(),
            calls,
            ..ModelReply::default()
        })
    }
}
