//! What a request says, held against what there is.

use std::path::{Path, PathBuf};

use agent_client_protocol::{
    Error,
    v1::schema::{McpServer, SessionId},
};

use super::super::{modes::Mode, seat::Ready};

/// A mode that there is, and that nobody forbids here.
pub(super) fn allowed(id: &str, ready: &Ready) -> Result<Mode, Error> {
    let mode = Mode::parse(id).ok_or_else(|| {
        let ids = Mode::ALL.map(Mode::id).join("`, `");
        Error::invalid_params().data(format!("there is no mode `{id}`; there are `{ids}`"))
    })?;
    if mode.is_within(ready.floor) {
        Ok(mode)
    } else {
        Err(Error::invalid_params().data("the configuration does not allow this mode"))
    }
}

/// What the client calls the tool servers it would have started.
pub(super) fn names(servers: &[McpServer]) -> Vec<String> {
    servers
        .iter()
        .map(|server| match server {
            McpServer::Http(server) => server.name.clone(),
            McpServer::Sse(server) => server.name.clone(),
            McpServer::Stdio(server) => server.name.clone(),
            _ => "one of an unknown kind".to_owned(),
        })
        .collect()
}

pub(super) fn unknown(id: &SessionId) -> Error {
    Error::invalid_params().data(format!("no session `{id}` is open here"))
}

/// Where a session is to work: a directory by its whole name.
pub(super) fn place(cwd: &Path, more: &[PathBuf]) -> Result<PathBuf, Error> {
    let refused = |why: String| Err(Error::invalid_params().data(why));
    if !more.is_empty() {
        return refused("a session works in one directory".to_owned());
    }
    if !cwd.is_absolute() {
        return refused(format!("`{}` is not an absolute path", cwd.display()));
    }
    match cwd.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => refused(format!("`{}` is not a directory", cwd.display())),
        Err(error) => refused(format!("cannot work in `{}`: {error}", cwd.display())),
    }
}
