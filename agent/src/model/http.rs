//! A model behind an address that speaks chat completions.
//!
//! The connection goes to the configured address and nowhere else: no proxy
//! but a configured one, no redirects, a bounded answer, a bounded wait. The
//! key is sent in one header and kept out of every message.
//!
//! A request runs in a thread of its own, so that a wait can be called off at
//! once; the thread ends with the connection's own time limit at the latest.

mod exchange;
pub(super) mod tls;

use std::{fmt, time::Duration};

use serde_json::{Map, Value};

use super::{
    Finish, ModelError, ModelPort, ModelReply, ModelRequest, ReplyLimits, Structured, wire,
};
use crate::cancel::{Cancel, Either};

/// How long the connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The wait before the first further try; it doubles.
const RETRY_WAIT: Duration = Duration::from_millis(300);
/// A backend that asks to be left alone for longer is not waited for.
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// What a backend is reached with.
#[derive(Clone, Default)]
pub struct HttpConfig {
    /// Such as `https://api.example.com/v1`.
    pub base_url: String,
    /// Sent as a bearer token.
    pub key: Option<String>,
    /// Where that is written down, for a person: "the file `key`".
    pub key_place: Option<String>,
    /// How it is told the form of an answer.
    pub structured: Structured,
    /// An address to go through, such as `http://127.0.0.1:3128`.
    pub proxy: Option<String>,
    /// Further tries where none was taken or the backend was too busy.
    pub retries: u32,
    /// How many tokens a conversation and the answer to it may have.
    pub context: Option<u64>,
    /// Fields that are added to each request.
    pub extra: Map<String, Value>,
    /// Bounds on each answer, besides those of the request.
    pub limits: ReplyLimits,
}

/// The backend.
pub struct HttpModel {
    address: String,
    config: HttpConfig,
    client: ureq::Agent,
    cancel: Cancel,
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl HttpModel {
    /// The backend at `base`, such as `http://127.0.0.1:8080/v1`.
    ///
    /// # Errors
    /// As for [`HttpModel::configured`].
    pub fn new(base: &str, key: Option<String>) -> Result<Self, ModelError> {
        Self::configured(HttpConfig {
            base_url: base.to_owned(),
            key,
            ..HttpConfig::default()
        })
    }

    /// The backend configured.
    ///
    /// # Errors
    /// `address`, for anything but an HTTP address, a proxy that is none, or a
    /// key that cannot be sent.
    pub fn configured(config: HttpConfig) -> Result<Self, ModelError> {
        let wrong = |why: String| Err(ModelError::Address(why));
        check_address(&config.base_url).map_err(ModelError::Address)?;
        let base = config.base_url.trim_end_matches('/');
        let is_tls = base.starts_with("https://");
        if let Some(key) = &config.key
            && !key.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return wrong("the key holds blanks or letters no key holds".to_owned());
        }
        let proxy = match config.proxy.as_deref().map(ureq::Proxy::new).transpose() {
            Ok(proxy) => proxy,
            Err(_) => {
                return wrong("the proxy is not an address like http://127.0.0.1:3128".into());
            }
        };
        let mut builder = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy);
        if is_tls || config.proxy.is_some() {
            builder = builder.tls_config(tls::config()?);
        }
        Ok(Self {
            address: format!("{base}/chat/completions"),
            client: builder.build().into(),
            config,
            cancel: Cancel::default(),
        })
    }

    /// The same; it stops waiting when the switch is thrown.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    fn ask(
        &self,
        request: ModelRequest<'_>,
        is_streamed: bool,
        heard: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ModelError> {
        let limits = request.limits.narrowed(self.config.limits);
        let request = request.within(limits);
        let body = wire::body(
            &request,
            self.config.structured,
            &self.config.extra,
            is_streamed,
        );
        let post = exchange::Post {
            client: self.client.clone(),
            address: self.address.clone(),
            key: self.config.key.clone(),
            body: body.to_string(),
        };
        let deadline = exchange::Deadline::after(limits.time_max);
        let off = Either(&self.cancel, request.over);
        let mut tries_left = self.config.retries;
        let mut wait = RETRY_WAIT;
        let reply = loop {
            let mut has_spoken = false;
            let mut hear = |words: &str| {
                has_spoken = true;
                heard(words);
            };
            match exchange::run(&post, limits, deadline, off, &mut hear) {
                Err(failed) if tries_left > 0 && !has_spoken && may_pass(&failed.error) => {
                    let asked = failed.again_after.unwrap_or_default();
                    if asked > PATIENCE_MAX || asked > deadline.left()? {
                        return Err(self.without_key(when_again(failed.error, asked)));
                    }
                    tries_left -= 1;
                    deadline.sleep(wait.max(asked), off)?;
                    wait = wait.saturating_mul(2);
                }
                done => {
                    break done.map_err(|failed| self.without_key(self.placed(failed.error)))?;
                }
            }
        };
        match (request.schema, reply.finish) {
            (Some(_), Finish::CutOff) => Err(ModelError::CutOff),
            (_, Finish::Withheld) => Err(ModelError::Declined(
                "its backend withheld the answer".to_owned(),
            )),
            (_, Finish::Ended | Finish::CutOff) => Ok(reply),
        }
    }

    /// Where nobody answers, the address is what a person has to look at; where a key is
    /// refused, the place it came from.
    fn placed(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::Refused(status @ (401 | 403), words) => {
                let sent = match (&self.config.key, &self.config.key_place) {
                    (None, _) => "no key was sent".to_owned(),
                    (Some(_), None) => "the key that was sent is not taken".to_owned(),
                    (Some(_), Some(place)) => {
                        format!("the key that was sent is the one of {place}")
                    }
                };
                let but = if words.is_empty() { "" } else { "; " };
                ModelError::Refused(status, format!("{words}{but}{sent}"))
            }
            ModelError::Unreachable(words) => {
                let base = &self.config.base_url;
                if base.starts_with("https://") && words.contains("InvalidContentType") {
                    return ModelError::Unreachable(format!(
                        "what answers at `{base}` speaks no TLS; is its address one with `http://`?"
                    ));
                }
                ModelError::Unreachable(format!(
                    "{words}, at `{base}`; start what serves it there, or name another place with `hermitcrab config backend`"
                ))
            }
            ModelError::Unreadable(words) if words.starts_with(wire::NO_JSON) => {
                ModelError::Unreadable(format!(
                    "{words}; is `{}` the address before `/chat/completions`?",
                    self.config.base_url
                ))
            }
            other => other,
        }
    }

    /// A backend that says the key back does not get it shown.
    fn without_key(&self, error: ModelError) -> ModelError {
        let Some(key) = &self.config.key else {
            return error;
        };
        let clean = |words: String| words.replace(key.as_str(), "[key]");
        match error {
            ModelError::Refused(status, words) => ModelError::Refused(status, clean(words)),
            ModelError::Unreachable(words) => ModelError::Unreachable(clean(words)),
            ModelError::Unreadable(words) => ModelError::Unreadable(clean(words)),
            ModelError::Declined(words) => ModelError::Declined(clean(words)),
            other => other,
        }
    }
}

/// Whether text can be the address of a backend.
///
/// # Errors
/// It cannot, in words.
pub fn check_address(base: &str) -> Result<(), String> {
    if !base.starts_with("http://") && !base.starts_with("https://") {
        return Err(format!("`{base}` does not begin with http:// or https://"));
    }
    if base.contains('@') {
        return Err("an address holds no password; use `key_env` or `key_file`".to_owned());
    }
    Ok(())
}

/// The same with how long its backend wants to be left alone, which is longer than anybody waits.
fn when_again(error: ModelError, asked: Duration) -> ModelError {
    match error {
        ModelError::Refused(status, words) => {
            let gap = if words.is_empty() { "" } else { " " };
            let seconds = asked.as_secs();
            let words = format!("{words}{gap}(it wants to be asked again after {seconds} s)");
            ModelError::Refused(status, words)
        }
        other => other,
    }
}

/// Whether the same may work a moment later.
fn may_pass(error: &ModelError) -> bool {
    match error {
        ModelError::Unreachable(_) => true,
        ModelError::Refused(status, _) => matches!(status, 429 | 500 | 502..=504 | 529),
        ModelError::Address(_)
        | ModelError::Unreadable(_)
        | ModelError::TimedOut(_)
        | ModelError::TooLong(_)
        | ModelError::Repeats
        | ModelError::CutOff
        | ModelError::Declined(_)
        | ModelError::Cancelled
        | ModelError::Load(_)
        | ModelError::Died(_)
        | ModelError::Full { .. }
        | ModelError::ScriptEnded => false,
    }
}

impl ModelPort for HttpModel {
    fn holds(&self) -> Option<u64> {
        self.config.context
    }

    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.ask(request, false, &mut |_| {})
    }

    fn stream(
        &mut self,
        request: ModelRequest<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ModelError> {
        let mut has_spoken = false;
        let reply = self.ask(request, true, &mut |words| {
            has_spoken = true;
            heard(words);
        })?;
        // A backend that does not stream answers in one piece.
        if !has_spoken && !reply.text.is_empty() {
            heard(&reply.text);
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpConfig, HttpModel, ModelError};

    #[test]
    fn only_addresses_that_mean_something_are_taken() {
        for base in ["http://127.0.0.1:1/v1/", "https://api.example.com/v1"] {
            assert!(HttpModel::new(base, None).is_ok(), "{base}");
        }
        for base in [
            "",
            "ftp://x",
            "127.0.0.1:8080",
            "file:///etc/passwd",
            "http://me:secret@h/v1",
        ] {
            assert!(
                matches!(HttpModel::new(base, None), Err(ModelError::Address(_))),
                "{base}"
            );
        }
    }

    #[test]
    fn the_key_is_not_shown_and_must_be_one() {
        let model = HttpModel::new("http://h/v1", Some("sesame".into())).expect("address");
        assert!(!format!("{model:?}").contains("sesame"));
        let error = model.without_key(ModelError::Refused(401, "no sesame here".into()));
        assert_eq!(error, ModelError::Refused(401, "no [key] here".into()));
        let two_lines = HttpModel::new("http://h/v1", Some("a\r\nx: y".into()));
        assert!(matches!(two_lines, Err(ModelError::Address(_))));
        let proxy = HttpModel::configured(HttpConfig {
            base_url: "http://h/v1".into(),
            proxy: Some("\u{0}".into()),
            ..HttpConfig::default()
        });
        assert!(matches!(proxy, Err(ModelError::Address(_))));
    }
}
