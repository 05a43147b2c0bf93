//! The worker protocol's frames.

use bisim_world::protocol::{Reply, Request, read_frame, write_frame};
use serde::{Serialize, de::DeserializeOwned};

use super::{Verdict, ensure};

/// Read `bytes` as a stream of frames, then as the body of one whole frame.
pub fn check(bytes: &[u8]) -> Verdict {
    stream::<Request>(bytes)?;
    stream::<Reply>(bytes)?;
    let mut framed = u32::try_from(bytes.len())
        .map_err(|_| "input too long".to_owned())?
        .to_le_bytes()
        .to_vec();
    framed.extend_from_slice(bytes);
    stream::<Request>(&framed)?;
    stream::<Reply>(&framed)
}

/// Whatever is read comes back the same after being written; the end is always reached.
fn stream<T: Serialize + DeserializeOwned + PartialEq>(mut bytes: &[u8]) -> Verdict {
    loop {
        let before = bytes.len();
        let Ok(Some(message)) = read_frame::<T>(&mut bytes) else {
            return Ok(());
        };
        ensure(bytes.len() < before, || "a frame of no bytes".to_owned())?;
        let mut written = Vec::new();
        write_frame(&mut written, &message).map_err(|error| format!("not written: {error}"))?;
        match read_frame::<T>(&mut written.as_slice()) {
            Ok(Some(again)) => ensure(again == message, || "read back otherwise".to_owned())?,
            Ok(None) => return Err("read back as nothing".to_owned()),
            Err(error) => return Err(format!("not read back: {error}")),
        }
    }
}
