//! llama.cpp at work: a model, a conversation, one token after the other.
//!
//! Runs in the model's own process only. A token is first chosen freely and
//! then looked at by the grammar; only if that refuses it are all the others
//! looked at, which for a large vocabulary takes longer than choosing. What the
//! conversation before has in common with this one is not computed again.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use llama_cpp_2::{
    context::{LlamaContext, params::LlamaContextParams},
    llama_backend::LlamaBackend,
    llama_batch::LlamaBatch,
    model::{LlamaModel, params::LlamaModelParams},
    sampling::LlamaSampler,
    token::{LlamaToken, data::LlamaTokenData, data_array::LlamaTokenDataArray},
};

use super::{
    prompt,
    talk::{Ask, Done, End, Failed, Load, Loaded, Said, say},
};

/// Tokens that are computed at once.
const BATCH_TOKENS: usize = 512;

/// Loads the model and answers until there is nothing more to answer.
///
/// # Errors
/// The model cannot be loaded.
pub fn serve(
    load: &Load,
    mut next: impl FnMut() -> Option<Ask>,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    let not_loaded = |why: String| Failed::NotLoaded(why);
    let backend = LlamaBackend::init().map_err(|error| not_loaded(error.to_string()))?;
    let first = load.files.first().map_or("", String::as_str);
    let params = LlamaModelParams::default().with_n_gpu_layers(0);
    let model = LlamaModel::load_from_file(&backend, first, &params)
        .map_err(|_| not_loaded("llama.cpp cannot load it".to_owned()))?;
    let known = model.n_ctx_train();
    let wanted = load.context.unwrap_or(known).min(known.max(1));
    let threads = i32::try_from(load.threads).unwrap_or(1).max(1);
    let batch = u32::try_from(BATCH_TOKENS).unwrap_or(u32::MAX);
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(wanted))
        .with_n_batch(batch)
        .with_n_ubatch(batch)
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_offload_kqv(false)
        .with_op_offload(false);
    let context = model.new_context(&backend, params).map_err(|_| {
        not_loaded(format!(
            "there is not enough memory for a context of {wanted} tokens; `context_tokens` asks for less"
        ))
    })?;
    say(&Said::Loaded(Loaded {
        architecture: model
            .meta_val_str("general.architecture")
            .unwrap_or_default(),
        parameters: model.n_params(),
        context: context.n_ctx(),
        vocabulary: u32::try_from(model.n_vocab()).unwrap_or(0),
        has_template: model.chat_template(None).is_ok(),
    }));
    let mut engine = Engine {
        model: &model,
        context,
        held: Vec::new(),
    };
    while let Some(ask) = next() {
        let said = match engine.answer(&ask, stop) {
            Ok(done) => Said::Done(done),
            Err(failed) => {
                // What is computed by now may be anything.
                engine.forget();
                Said::Failed(failed)
            }
        };
        if !say(&said) {
            break;
        }
    }
    Ok(())
}

struct Engine<'m> {
    model: &'m LlamaModel,
    context: LlamaContext<'m>,
    /// The tokens whose state the context holds.
    held: Vec<LlamaToken>,
}

impl Engine<'_> {
    fn forget(&mut self) {
        self.context.clear_kv_cache();
        self.held.clear();
    }

    fn answer(&mut self, ask: &Ask, stop: &AtomicBool) -> Result<Done, Failed> {
        let began = Instant::now();
        let tokens = prompt::tokens(self.model, &ask.turns);
        let holds = usize::try_from(self.context.n_ctx()).unwrap_or(usize::MAX);
        if tokens.is_empty() || tokens.len() >= holds {
            return Err(Failed::TooLong {
                tokens: count(tokens.len()),
                context: count(holds),
            });
        }
        let mut done = Done {
            read: count(tokens.len()),
            ..Done::default()
        };
        let mut chooser = Chooser::new(self.model, ask)?;
        if !self.read(&tokens, stop)? {
            done.end = End::Stopped;
            return Ok(done);
        }
        done.reading_micros = micros(began.elapsed());
        let began = Instant::now();
        let room = holds - tokens.len();
        let most = ask.tokens_max.map_or(room, |most| {
            usize::try_from(most).unwrap_or(usize::MAX).min(room)
        });
        let mut text = Text::default();
        let vocab = self.model.vocab();
        done.end = loop {
            if stop.load(Ordering::SeqCst) {
                break End::Stopped;
            }
            if count(most) <= done.written {
                break End::Full;
            }
            let all = self.context.token_data_array_ith(-1);
            let Some(token) = chooser.choose(all) else {
                break End::Ended;
            };
            if vocab.is_eog(token) {
                break End::Ended;
            }
            chooser.accept(token);
            done.written = done.written.saturating_add(1);
            let piece = vocab.token_to_piece(token, false, None);
            if let Some(words) = text.take(&piece)?
                && !say(&Said::Piece(words))
            {
                break End::Stopped;
            }
            self.compute(&[token])?;
        };
        if done.end == End::Ended {
            text.end()?;
        }
        done.writing_micros = micros(began.elapsed());
        Ok(done)
    }

    /// Computes the conversation; whether it came to its end.
    fn read(&mut self, tokens: &[LlamaToken], stop: &AtomicBool) -> Result<bool, Failed> {
        let same = self
            .held
            .iter()
            .zip(tokens)
            .take_while(|(held, token)| held == token)
            .count();
        // The last one is computed again: what comes next is known only then.
        let same = same.min(tokens.len().saturating_sub(1));
        let from = u32::try_from(same).ok();
        if self.context.clear_kv_cache_seq(Some(0), from, None) == Ok(true) {
            self.held.truncate(same);
        } else {
            self.forget();
        }
        let rest = tokens.get(self.held.len()..).unwrap_or_default();
        for chunk in rest.chunks(BATCH_TOKENS) {
            if stop.load(Ordering::SeqCst) {
                return Ok(false);
            }
            self.compute(chunk)?;
        }
        Ok(true)
    }

    fn compute(&mut self, tokens: &[LlamaToken]) -> Result<(), Failed> {
        let broke = |why: &str| Failed::Broke(format!("llama.cpp failed: {why}"));
        let mut batch = LlamaBatch::new(tokens.len(), 1);
        for (place, token) in tokens.iter().enumerate() {
            let at = i32::try_from(self.held.len().saturating_add(place))
                .map_err(|_| broke("a position is too large"))?;
            batch
                .add(*token, at, &[0], place + 1 == tokens.len())
                .map_err(|error| broke(&error.to_string()))?;
        }
        self.context
            .decode(&mut batch)
            .map_err(|error| broke(&error.to_string()))?;
        self.held.extend_from_slice(tokens);
        Ok(())
    }
}

/// What chooses the next token.
struct Chooser {
    free: LlamaSampler,
    grammar: Option<LlamaSampler>,
}

impl Chooser {
    fn new(model: &LlamaModel, ask: &Ask) -> Result<Self, Failed> {
        let free = if ask.temperature > 0.0 {
            LlamaSampler::chain_simple([
                LlamaSampler::temp(ask.temperature),
                LlamaSampler::dist(ask.seed),
            ])
        } else {
            LlamaSampler::greedy()
        };
        let grammar = ask
            .grammar
            .as_deref()
            .map(|rules| LlamaSampler::grammar(model, rules, "root"))
            .transpose()
            .map_err(|_| Failed::Grammar)?;
        Ok(Self { free, grammar })
    }

    /// `None` if the grammar leaves nothing at all.
    fn choose(&mut self, mut all: LlamaTokenDataArray) -> Option<LlamaToken> {
        let freely = all.clone().with_sampler(&mut self.free).selected_token();
        let Some(grammar) = &mut self.grammar else {
            return freely;
        };
        if let Some(token) = freely {
            let alone = LlamaTokenData::new(token, 1.0, 0.0);
            let mut alone = LlamaTokenDataArray::new(vec![alone], false);
            alone.apply_sampler(grammar);
            if is_left(&alone) {
                return Some(token);
            }
        }
        all.apply_sampler(grammar);
        if !is_left(&all) {
            return None;
        }
        all.with_sampler(&mut self.free).selected_token()
    }

    fn accept(&mut self, token: LlamaToken) {
        if let Some(grammar) = &mut self.grammar {
            grammar.accept(token);
        }
    }
}

/// Whether anything is left to choose from.
fn is_left(all: &LlamaTokenDataArray) -> bool {
    all.data.iter().any(|one| one.logit() > f32::NEG_INFINITY)
}

/// Bytes that become text once they are whole letters.
#[derive(Default)]
struct Text {
    rest: Vec<u8>,
}

impl Text {
    fn take(&mut self, piece: &[u8]) -> Result<Option<String>, Failed> {
        self.rest.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err(Failed::NotText),
        };
        let rest = self.rest.split_off(whole);
        let words = String::from_utf8(std::mem::replace(&mut self.rest, rest))
            .map_err(|_| Failed::NotText)?;
        Ok((!words.is_empty()).then_some(words))
    }

    /// Nothing may be left over.
    fn end(&self) -> Result<(), Failed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Failed::NotText)
        }
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
