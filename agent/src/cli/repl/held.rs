//! What is held in this session: shown, granted and ended at the prompt.

use std::path::{Path, PathBuf};

use hermitcrab_core::approval::Asking;

use super::Repl;
use crate::{
    cli::{Trouble, open, tell},
    exit,
    runtime::GrantWords,
    screen::{Tone, visible},
};

impl Repl<'_> {
    /// When the agent asks: said, or set until this session ends. What an administrator wants at
    /// least stays.
    pub(super) fn mode(&mut self, wanted: Option<Asking>) -> Result<u8, Trouble> {
        if let Some(wanted) = wanted {
            let mode = self.ground.asking(Some(wanted), self.is_watched);
            self.runtime
                .set_asking(mode)
                .map_err(|error| (error.to_string(), exit::REFUSED))?;
            if mode != wanted {
                let why = format!("{wanted} is not to be had here, so it is {mode}");
                tell(&self.screen.tone(Tone::Warn, &why));
            }
        }
        let until = wanted.map_or("", |_| "until this session ends, ");
        let mode = self.runtime.asking();
        tell(&format!("{until}{mode}: {}", mode.sentence()));
        Ok(exit::OK)
    }

    pub(super) fn caps(&mut self) -> Result<u8, Trouble> {
        let agent = self.runtime.first_agent();
        for (grant, words) in self.runtime.grants_in_words(agent) {
            tell(&format!("{:<10} {}", grant.to_string(), visible(&words)));
        }
        println!(
            "{}",
            self.screen.tone(Tone::Dim, "kept beyond this session:")
        );
        self.program(&["caps".to_owned()])
    }

    pub(super) fn grant(&mut self, grants: &[String]) -> Result<u8, Trouble> {
        let agent = self.runtime.first_agent();
        for grant in grants {
            let words = open::words(grant, &self.ground.workspace)?;
            let id = self
                .runtime
                .grant(agent, &words)
                .map_err(|error| (error.to_string(), exit::USAGE))?;
            tell(&format!(
                "{id} {} on {}, until this session ends",
                words.verb,
                visible(&spelled(&words))
            ));
            open::tell_what_is_asked(&mut self.runtime, &words);
        }
        Ok(exit::OK)
    }

    pub(super) fn revoke(&mut self, name: &str) -> Result<u8, Trouble> {
        let agent = self.runtime.first_agent();
        let known = self.runtime.grants_in_words(agent);
        let Some((grant, _)) = known.iter().find(|(grant, _)| grant.to_string() == name) else {
            return Err((
                format!("there is no grant `{name}` in this session; `caps` names them"),
                exit::USAGE,
            ));
        };
        let ended = self
            .runtime
            .revoke(*grant)
            .map_err(|denial| (denial.to_string(), exit::REFUSED))?;
        let ended: Vec<String> = ended.iter().map(ToString::to_string).collect();
        tell(&format!("ended: {}", ended.join(", ")));
        Ok(exit::OK)
    }
}

/// What is granted, a directory without the dots a person may have written.
fn spelled(words: &GrantWords) -> String {
    if !words.verb.starts_with("fs.") {
        return words.on.clone();
    }
    let path: PathBuf = Path::new(&words.on).components().collect();
    path.to_string_lossy().into_owned()
}
