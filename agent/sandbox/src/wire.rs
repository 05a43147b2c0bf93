//! The encoding between the agent and its spawner process.
//!
//! Little-endian integers and length-prefixed bytes. Both ends are the same
//! build of the same program, so there is no version; a frame that does not
//! decode is an error, never a guess.

/// The longest frame either side accepts, in bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A frame that does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireError;

/// Builds a frame.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        // A length over u32 cannot pass FRAME_BYTES_MAX, which the sender checks.
        self.u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.u32(u32::try_from(items.len()).unwrap_or(u32::MAX));
        for item in items {
            write(self, item);
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Takes a frame apart.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError)?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, WireError> {
        let length = usize::try_from(self.u32()?).map_err(|_| WireError)?;
        let (head, rest) = self.rest.split_at_checked(length).ok_or(WireError)?;
        self.rest = rest;
        Ok(head.to_vec())
    }

    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let count = self.u32()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// Succeeds only if everything was read.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut writer = Writer::default();
        writer.u8(7);
        writer.i32(-3);
        writer.u64(u64::MAX);
        writer.list(&[b"a".to_vec(), Vec::new()], |w, item| w.bytes(item));
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8(), Ok(7));
        assert_eq!(reader.i32(), Ok(-3));
        assert_eq!(reader.u64(), Ok(u64::MAX));
        assert_eq!(
            reader.list(Reader::bytes),
            Ok(vec![b"a".to_vec(), Vec::new()])
        );
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn a_short_or_long_frame_is_refused() {
        assert_eq!(Reader::new(&[1, 2]).u32(), Err(WireError));
        assert_eq!(Reader::new(&[9, 0, 0, 0, 1]).bytes(), Err(WireError));
        assert_eq!(Reader::new(&[1]).finish(), Err(WireError));
    }
}
