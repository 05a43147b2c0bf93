//! A model of a few thousand numbers chosen by chance, written as a GGUF file:
//! everything about it is real but its sense.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::path::Path;

/// Numbers of one position.
const WIDTH: usize = 64;
/// Numbers of the inner step.
const INNER: usize = 128;
const LAYERS: usize = 2;
const HEADS: u32 = 4;
/// Where tensors begin.
const ALIGNMENT: usize = 32;

/// Kinds of tokens, as the format numbers them.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const BYTE: i32 = 6;

/// What differs from one tiny model to the next.
#[derive(Clone, Debug)]
pub struct Tiny {
    /// What chance begins with.
    pub seed: u64,
    /// The architecture it claims to have.
    pub architecture: &'static str,
    /// How long a conversation it says it was made for.
    pub context: u32,
    /// How it says a conversation is written.
    pub template: Option<&'static str>,
    /// A tensor it lacks.
    pub without: Option<&'static str>,
}

/// The usual way to mark who speaks.
pub const CHATML: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

impl Default for Tiny {
    fn default() -> Self {
        Self {
            seed: 1,
            architecture: "llama",
            context: 32_768,
            template: Some(CHATML),
            without: None,
        }
    }
}

impl Tiny {
    /// Writes it.
    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.bytes()).unwrap();
    }

    /// The whole file.
    pub fn bytes(&self) -> Vec<u8> {
        let vocabulary = vocabulary();
        let mut fields = Fields::default();
        fields.text("general.architecture", self.architecture);
        fields.text("general.name", "tiny");
        let own = |name: &str| format!("{}.{name}", self.architecture);
        let size = |number: usize| u32::try_from(number).unwrap();
        for (name, number) in [
            ("context_length", self.context),
            ("embedding_length", size(WIDTH)),
            ("block_count", size(LAYERS)),
            ("feed_forward_length", size(INNER)),
            ("attention.head_count", HEADS),
            ("attention.head_count_kv", HEADS),
            ("rope.dimension_count", size(WIDTH) / HEADS),
        ] {
            fields.number(&own(name), number);
        }
        fields.real(&own("attention.layer_norm_rms_epsilon"), 1e-5);
        fields.text("tokenizer.ggml.model", "llama");
        fields.texts(
            "tokenizer.ggml.tokens",
            vocabulary.iter().map(|token| token.0.as_str()),
        );
        fields.reals(
            "tokenizer.ggml.scores",
            vocabulary.iter().map(|token| token.1),
        );
        fields.kinds(
            "tokenizer.ggml.token_type",
            vocabulary.iter().map(|token| token.2),
        );
        fields.number("tokenizer.ggml.unknown_token_id", 0);
        fields.number("tokenizer.ggml.bos_token_id", 1);
        fields.number("tokenizer.ggml.eos_token_id", 2);
        // A blank before a text would stand between a mark and what follows it.
        fields.flag("tokenizer.ggml.add_space_prefix", false);
        if let Some(template) = self.template {
            fields.text("tokenizer.chat_template", template);
        }
        let mut tensors = Tensors {
            chance: Chance(self.seed),
            ..Tensors::default()
        };
        let known = vocabulary.len();
        tensors.random("token_embd.weight", &[WIDTH, known], 0.5);
        tensors.ones("output_norm.weight", WIDTH);
        tensors.random("output.weight", &[WIDTH, known], 0.4);
        for layer in 0..LAYERS {
            let own = |name: &str| format!("blk.{layer}.{name}.weight");
            tensors.ones(&own("attn_norm"), WIDTH);
            for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
                tensors.random(&own(name), &[WIDTH, WIDTH], 0.2);
            }
            tensors.ones(&own("ffn_norm"), WIDTH);
            tensors.random(&own("ffn_gate"), &[WIDTH, INNER], 0.2);
            tensors.random(&own("ffn_up"), &[WIDTH, INNER], 0.2);
            tensors.random(&own("ffn_down"), &[INNER, WIDTH], 0.2);
        }
        tensors
            .all
            .retain(|tensor| Some(tensor.name.as_str()) != self.without);

        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend((tensors.all.len() as u64).to_le_bytes());
        out.extend(fields.count.to_le_bytes());
        out.extend(&fields.bytes);
        let mut offset = 0_u64;
        for tensor in &tensors.all {
            text(&mut out, &tensor.name);
            out.extend(u32::try_from(tensor.shape.len()).unwrap().to_le_bytes());
            for length in &tensor.shape {
                out.extend((*length as u64).to_le_bytes());
            }
            out.extend(0_u32.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += (tensor.numbers.len() * 4).next_multiple_of(ALIGNMENT) as u64;
        }
        for tensor in &tensors.all {
            out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
            for number in &tensor.numbers {
                out.extend(number.to_le_bytes());
            }
        }
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        out
    }
}

/// Tokens with score and kind: control tokens, every byte, printable letters,
/// and some of two or more letters.
fn vocabulary() -> Vec<(String, f32, i32)> {
    let mut all = vec![
        ("<unk>".to_owned(), 0.0, UNKNOWN),
        ("<s>".to_owned(), 0.0, CONTROL),
        ("</s>".to_owned(), 0.0, CONTROL),
    ];
    all.extend((0..=255_u8).map(|byte| (format!("<0x{byte:02X}>"), 0.0, BYTE)));
    all.push(("<|im_start|>".to_owned(), 0.0, CONTROL));
    all.push(("<|im_end|>".to_owned(), 0.0, CONTROL));
    // A blank is written as this letter by tokenizers of this kind.
    let letters = (b'!'..=b'~').map(|byte| char::from(byte).to_string());
    let words = [
        "\u{2581}",
        "{\"",
        "\":",
        "\",\"",
        "},{",
        "]}",
        "th",
        "er",
        "re",
        "ti",
        "id",
        "call",
        "with",
        "path",
        "steps",
        "\u{2581}the",
        "\u{fc}",
    ];
    let plain = letters.chain(words.map(str::to_owned)).enumerate();
    all.extend(plain.map(|(place, word)| (word, -(place as f32), NORMAL)));
    all
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

#[derive(Default)]
struct Fields {
    bytes: Vec<u8>,
    count: u64,
}

impl Fields {
    fn named(&mut self, name: &str, kind: u32) {
        self.count += 1;
        text(&mut self.bytes, name);
        self.bytes.extend(kind.to_le_bytes());
    }

    fn text(&mut self, name: &str, value: &str) {
        self.named(name, 8);
        text(&mut self.bytes, value);
    }

    fn number(&mut self, name: &str, value: u32) {
        self.named(name, 4);
        self.bytes.extend(value.to_le_bytes());
    }

    fn real(&mut self, name: &str, value: f32) {
        self.named(name, 6);
        self.bytes.extend(value.to_le_bytes());
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.named(name, 7);
        self.bytes.push(u8::from(value));
    }

    fn list(&mut self, name: &str, kind: u32, items: usize) {
        self.named(name, 9);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend((items as u64).to_le_bytes());
    }

    fn texts<'t>(&mut self, name: &str, items: impl ExactSizeIterator<Item = &'t str>) {
        self.list(name, 8, items.len());
        items.for_each(|item| text(&mut self.bytes, item));
    }

    fn reals(&mut self, name: &str, items: impl ExactSizeIterator<Item = f32>) {
        self.list(name, 6, items.len());
        items.for_each(|item| self.bytes.extend(item.to_le_bytes()));
    }

    fn kinds(&mut self, name: &str, items: impl ExactSizeIterator<Item = i32>) {
        self.list(name, 5, items.len());
        items.for_each(|item| self.bytes.extend(item.to_le_bytes()));
    }
}

struct Tensor {
    name: String,
    shape: Vec<usize>,
    numbers: Vec<f32>,
}

#[derive(Default)]
struct Tensors {
    all: Vec<Tensor>,
    chance: Chance,
}

impl Tensors {
    fn random(&mut self, name: &str, shape: &[usize], reach: f32) {
        let count = shape.iter().product();
        let numbers = (0..count).map(|_| self.chance.next() * reach).collect();
        self.push(name, shape, numbers);
    }

    fn ones(&mut self, name: &str, count: usize) {
        self.push(name, &[count], vec![1.0; count]);
    }

    fn push(&mut self, name: &str, shape: &[usize], numbers: Vec<f32>) {
        self.all.push(Tensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            numbers,
        });
    }
}

#[derive(Default)]
struct Chance(u64);

impl Chance {
    /// Between -1 and 1.
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let top = u16::try_from(self.0 >> 48).unwrap();
        f32::from(top) / 32_768.0 - 1.0
    }
}
