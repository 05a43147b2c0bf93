//! What is in a GGUF file, as far as its head tells, and whether all of it is
//! there.
//!
//! A model file comes from anywhere. Every number in it is bounded before it is
//! believed, nothing is kept in memory but the few fields that are shown, and a
//! file that ends too early is told from a whole one: half a download is the
//! usual trouble.

use std::{
    fmt,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use crate::given_file;

/// Fields and tensors a file may name.
const ENTRIES_MAX: u64 = 1 << 20;
/// The longest name or text, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Elements of one list, such as a vocabulary.
const LIST_MAX: u64 = 1 << 24;
/// Dimensions of a tensor.
const DIMENSIONS_MAX: u32 = 8;
/// Where tensors begin, if the file does not say.
const ALIGNMENT: u64 = 32;

/// What a file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gguf {
    /// The version of the format.
    pub version: u32,
    /// Such as `llama`.
    pub architecture: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The longest conversation it was made for, in tokens.
    pub context: Option<u64>,
    /// How many tokens it knows.
    pub vocabulary: Option<u64>,
    /// How many tensors it holds.
    pub tensors: u64,
    /// How many numbers they hold together.
    pub parameters: u64,
    /// How long the file is.
    pub bytes: u64,
    /// How long it has to be at least.
    pub bytes_needed: u64,
}

impl Gguf {
    /// Whether the end is missing.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.bytes < self.bytes_needed
    }
}

/// Why a file is not one.
#[derive(Debug)]
pub enum GgufError {
    /// It cannot be read.
    Io(io::Error),
    /// It begins with something else.
    Magic,
    /// A version nobody here knows.
    Version(u32),
    /// It ends within its head.
    CutOff,
    /// It says something that cannot be.
    Form(&'static str),
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "it cannot be read: {error}"),
            Self::Magic => write!(f, "it is no GGUF file"),
            Self::Version(version) => write!(
                f,
                "it has version {version} of the format; 2 and 3 are known"
            ),
            Self::CutOff => write!(f, "it ends within its head, as half a download does"),
            Self::Form(what) => write!(f, "{what}, so it is damaged"),
        }
    }
}

impl std::error::Error for GgufError {}

impl From<io::Error> for GgufError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::CutOff
        } else {
            Self::Io(error)
        }
    }
}

/// Reads the head of a file.
///
/// # Errors
/// See [`GgufError`].
pub fn read(path: &Path) -> Result<Gguf, GgufError> {
    let (file, seen) = given_file::open(path)?;
    head(BufReader::new(file), seen.len())
}

/// Reads a head from the beginning of something this long.
///
/// # Errors
/// See [`GgufError`].
pub fn head(from: impl Read + Seek, bytes: u64) -> Result<Gguf, GgufError> {
    let mut reader = Reader { from };
    if &reader.bytes::<4>()? != b"GGUF" {
        return Err(GgufError::Magic);
    }
    let version = reader.u32()?;
    if !matches!(version, 2 | 3) {
        return Err(GgufError::Version(version));
    }
    let tensors = reader.u64()?;
    let fields = reader.u64()?;
    if tensors > ENTRIES_MAX || fields > ENTRIES_MAX {
        return Err(GgufError::Form("it names more entries than any model has"));
    }
    let mut gguf = Gguf {
        version,
        tensors,
        bytes,
        ..Gguf::default()
    };
    let mut alignment = ALIGNMENT;
    for _ in 0..fields {
        let name = reader.text()?;
        let kind = reader.u32()?;
        match (name.as_str(), reader.value(kind)?) {
            ("general.architecture", Field::Text(text)) => gguf.architecture = Some(text),
            ("general.name", Field::Text(text)) => gguf.name = Some(text),
            ("general.alignment", Field::Number(number)) => alignment = number,
            ("tokenizer.ggml.tokens", Field::List(count)) => gguf.vocabulary = Some(count),
            (name, Field::Number(number)) if name.ends_with(".context_length") => {
                gguf.context = Some(number);
            }
            _ => {}
        }
    }
    if !alignment.is_power_of_two() || alignment > 1 << 20 {
        return Err(GgufError::Form("it aligns its tensors in no usual way"));
    }
    let mut end = 0;
    for _ in 0..tensors {
        reader.text()?;
        let dimensions = reader.u32()?;
        if dimensions > DIMENSIONS_MAX {
            return Err(GgufError::Form("a tensor has too many dimensions"));
        }
        let mut numbers = 1_u64;
        for _ in 0..dimensions {
            numbers = numbers
                .checked_mul(reader.u64()?)
                .ok_or(GgufError::Form("a tensor is larger than any can be"))?;
        }
        let kind = reader.u32()?;
        let offset = reader.u64()?;
        gguf.parameters = gguf.parameters.saturating_add(numbers);
        end = end.max(offset.saturating_add(bytes_of(kind, numbers)));
    }
    let data = reader
        .from
        .stream_position()?
        .div_ceil(alignment)
        .saturating_mul(alignment);
    gguf.bytes_needed = data.saturating_add(end);
    Ok(gguf)
}

/// How long so many numbers of a kind are at least; of kinds that came later,
/// only that there is something.
fn bytes_of(kind: u32, numbers: u64) -> u64 {
    // Bytes of a block, and numbers in it.
    let (bytes, block) = match kind {
        0 | 26 => (4, 1),
        1 | 25 | 30 => (2, 1),
        2 => (18, 32),
        3 => (20, 32),
        6 => (22, 32),
        7 => (24, 32),
        8 => (34, 32),
        10 => (84, 256),
        11 => (110, 256),
        12 => (144, 256),
        13 => (176, 256),
        14 => (210, 256),
        24 => (1, 1),
        27 | 28 => (8, 1),
        _ => return 1,
    };
    numbers.div_ceil(block).saturating_mul(bytes)
}

enum Field {
    Text(String),
    Number(u64),
    List(u64),
    Other,
}

struct Reader<R> {
    from: R,
}

impl<R: Read + Seek> Reader<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn text(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        if length > TEXT_BYTES_MAX {
            return Err(GgufError::Form("a name in it is longer than any is"));
        }
        // Read bit by bit: what is not there takes no memory.
        let mut bytes = Vec::new();
        let got = (&mut self.from).take(length).read_to_end(&mut bytes)?;
        if u64::try_from(got).unwrap_or(u64::MAX) < length {
            return Err(GgufError::CutOff);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn skip(&mut self, bytes: u64) -> Result<(), GgufError> {
        let bytes =
            i64::try_from(bytes).map_err(|_| GgufError::Form("a list in it is too long"))?;
        self.from.seek(SeekFrom::Current(bytes))?;
        Ok(())
    }

    fn value(&mut self, kind: u32) -> Result<Field, GgufError> {
        Ok(match kind {
            0 => Field::Number(u64::from(self.bytes::<1>()?[0])),
            2 => Field::Number(u64::from(u16::from_le_bytes(self.bytes()?))),
            4 => Field::Number(u64::from(self.u32()?)),
            10 => Field::Number(self.u64()?),
            8 => Field::Text(self.text()?),
            9 => self.list()?,
            other => {
                let bytes =
                    fixed(other).ok_or(GgufError::Form("a field in it has no known kind"))?;
                self.skip(bytes)?;
                Field::Other
            }
        })
    }

    fn list(&mut self) -> Result<Field, GgufError> {
        let kind = self.u32()?;
        let count = self.u64()?;
        if count > LIST_MAX {
            return Err(GgufError::Form("a list in it is longer than any is"));
        }
        match (kind, fixed(kind)) {
            (8, _) => {
                for _ in 0..count {
                    let length = self.u64()?;
                    if length > TEXT_BYTES_MAX {
                        return Err(GgufError::Form("a name in it is longer than any is"));
                    }
                    self.skip(length)?;
                }
            }
            (_, Some(bytes)) => self.skip(bytes.saturating_mul(count))?,
            (_, None) => return Err(GgufError::Form("a list in it has no known kind")),
        }
        Ok(Field::List(count))
    }
}

/// How long a value of a kind is, where all are the same.
fn fixed(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{Gguf, GgufError, head};

    fn text(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    }

    /// A model of one tensor, 8 by 4 numbers of four bytes each.
    fn model() -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend(1_u64.to_le_bytes());
        out.extend(3_u64.to_le_bytes());
        text(&mut out, "general.architecture");
        out.extend(8_u32.to_le_bytes());
        text(&mut out, "llama");
        text(&mut out, "llama.context_length");
        out.extend(4_u32.to_le_bytes());
        out.extend(2048_u32.to_le_bytes());
        text(&mut out, "tokenizer.ggml.tokens");
        out.extend(9_u32.to_le_bytes());
        out.extend(8_u32.to_le_bytes());
        out.extend(2_u64.to_le_bytes());
        text(&mut out, "a");
        text(&mut out, "b");
        text(&mut out, "weights");
        out.extend(2_u32.to_le_bytes());
        out.extend(8_u64.to_le_bytes());
        out.extend(4_u64.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out.extend(0_u64.to_le_bytes());
        out.resize(out.len().div_ceil(32) * 32 + 128, 0);
        out
    }

    fn read(bytes: &[u8]) -> Result<Gguf, GgufError> {
        head(Cursor::new(bytes), bytes.len() as u64)
    }

    #[test]
    fn a_model_tells_what_it_is_and_half_of_one_is_told_from_a_whole() {
        let whole = model();
        let gguf = read(&whole).expect("a model");
        assert_eq!(gguf.architecture.as_deref(), Some("llama"));
        assert_eq!((gguf.context, gguf.vocabulary), (Some(2048), Some(2)));
        assert_eq!((gguf.parameters, gguf.is_cut_off()), (32, false));
        assert_eq!(gguf.bytes_needed, whole.len() as u64);
        let gguf = read(&whole[..whole.len() - 1]).expect("its head");
        assert!(gguf.is_cut_off());
    }

    #[test]
    fn whatever_is_cut_or_changed_is_an_error_or_a_model_and_never_more() {
        let whole = model();
        let head_end = whole.len() - 128 - 32;
        for end in 0..head_end {
            assert!(read(&whole[..end]).is_err(), "{end}");
        }
        for place in 0..whole.len() {
            for value in [0x00, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[place] = value;
                let _ = read(&changed);
            }
        }
    }
}
