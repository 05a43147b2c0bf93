//! Data in a page: JSON, gzip, base64.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

/// Packs a value; the result holds only letters, digits, `+`, `/` and `=`.
pub(super) fn pack(value: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let bytes = packed
        .write_all(&text)
        .and_then(|()| packed.finish())
        .map_err(|error| format!("cannot pack the page's data: {error}"))?;
    Ok(data_encoding::BASE64.encode(&bytes))
}
