//! A model behind an address that speaks chat completions.
//!
//! The connection goes to the configured address and nowhere else: no proxy
//! from the environment, no redirects, a bounded answer, a bounded wait. The
//! key is sent in one header and kept out of every message.

use std::{fmt, time::Duration};

use super::{ModelError, ModelPort, ModelReply, ModelRequest, wire};

/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// How long the connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// The backend.
pub struct HttpModel {
    address: String,
    key: Option<String>,
    client: ureq::Agent,
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
    /// `address`, for anything but an HTTP address.
    pub fn new(base: &str, key: Option<String>) -> Result<Self, ModelError> {
        if base.starts_with("https://") {
            return Err(ModelError::Address(
                "this program speaks plain HTTP; put a proxy on this machine in between that speaks \
                 TLS to the backend"
                    .to_owned(),
            ));
        }
        if !base.starts_with("http://") {
            return Err(ModelError::Address(format!(
                "`{base}` does not begin with http://"
            )));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .build();
        Ok(Self {
            address: format!("{}/chat/completions", base.trim_end_matches('/')),
            key,
            client: config.into(),
        })
    }
}

impl ModelPort for HttpModel {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let unreachable = |error: ureq::Error| ModelError::Unreachable(error.to_string());
        let body = request.text();
        let mut post = self
            .client
            .post(&self.address)
            .header("content-type", "application/json");
        if let Some(key) = &self.key {
            post = post.header("authorization", format!("Bearer {key}"));
        }
        let mut answer = post.send(body.as_bytes()).map_err(unreachable)?;
        let status = answer.status().as_u16();
        let text = answer
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_string()
            .map_err(|error| ModelError::Unreadable(error.to_string()))?;
        if status == 200 {
            wire::reply(&text)
        } else {
            Err(ModelError::Refused(status, wire::complaint(&text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpModel, ModelError};

    #[test]
    fn only_addresses_this_build_can_use_are_taken() {
        assert!(HttpModel::new("http://127.0.0.1:1/v1/", None).is_ok());
        for base in [
            "",
            "https://x/v1",
            "ftp://x",
            "127.0.0.1:8080",
            "file:///etc/passwd",
        ] {
            assert!(
                matches!(HttpModel::new(base, None), Err(ModelError::Address(_))),
                "{base}"
            );
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        let model = HttpModel::new("http://h/v1", Some("sesame".into())).expect("address");
        assert!(!format!("{model:?}").contains("sesame"));
    }
}
