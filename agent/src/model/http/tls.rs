//! TLS as the machine trusts it: the certificates of its own store, or those
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` name, checked by rustls.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::model::ModelError;

/// The configuration.
///
/// # Errors
/// The machine trusts nobody.
pub fn config() -> Result<TlsConfig, ModelError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(ModelError::Address(
            "this machine has no trusted certificates; install `ca-certificates`, or name a file \
             of them in SSL_CERT_FILE"
                .to_owned(),
        ));
    }
    let certs: Vec<Certificate<'static>> = found
        .certs
        .iter()
        .map(|cert| Certificate::from_der(cert).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::from(certs.into_iter()))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}
