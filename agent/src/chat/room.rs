//! A conversation longer than its model holds goes on.
//!
//! What was said stays in the [`Chat`] as it was: it is kept, shown and gone through as
//! ever. Only what is *sent* is shortened, by [`shorter`]: results and arguments that are
//! long and old first, then whole rounds, of which an [`account`] stands in their place.
//! It happens before a request where it is known how much the model holds, and after a
//! refusal for length where it is not.
//!
//! Nothing here touches what an agent has read. That is the session's and stays when the
//! words are gone, so whoever got something into a conversation gains nothing by its
//! being left out. The account is a model's words about such data: it must never be put
//! into anybody's mouth, and of the user's words it repeats none; those stand beside it.

mod account;
mod shorter;

use hermitcrab_core::label::Source;

use self::account::Note;
use super::{Chat, ChatError, watch::Ports};
use crate::{
    cancel::Cancel,
    model::{Message, ModelError, ModelReply, ModelRequest, Offer, ReplyLimits, as_models_have},
    runtime::Runtime,
};

/// Bytes of a request for each of its tokens, where no backend has counted any yet.
const BYTES_PER_TOKEN: u64 = 3;
/// Times a request that is refused for its length is made shorter and sent again.
const TIMES_MAX: u32 = 4;
/// The longest account a model is asked for, in tokens.
const ACCOUNT_TOKENS_MAX: u32 = 2_000;
/// A request of less is not made shorter unless it is refused: there is little to gain.
const BYTES_LEAST: u64 = 4_000;

/// What is sent in place of a conversation's beginning, and what is known of its length.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    /// What stands in place of the messages that it covers.
    view: Vec<Message>,
    /// So many messages, the first one included, which is sent in any case.
    covers: usize,
    /// What is told of those that are left out whole.
    note: Note,
    /// What the user wants in this turn, which is never cut.
    wish: Option<String>,
    /// Tokens the model holds, as a refusal said.
    holds: Option<u64>,
    /// Bytes and tokens of a request that a backend counted.
    counted: Option<(u64, u64)>,
    /// Bytes of the request right after it was shortened.
    after: u64,
}

impl Room {
    /// A turn begins with these words of the user's.
    pub(super) fn begin(&mut self, words: &str) {
        self.wish = Some(words.to_owned());
    }

    fn tokens(&self, bytes: u64) -> u64 {
        match self.counted {
            Some((of, tokens)) => of_whole(bytes, tokens, of),
            None => bytes / BYTES_PER_TOKEN,
        }
    }

    fn bytes(&self, tokens: u64) -> u64 {
        match self.counted {
            Some((bytes, of)) => of_whole(tokens, bytes, of),
            None => tokens.saturating_mul(BYTES_PER_TOKEN),
        }
    }

    fn count(&mut self, bytes: u64, tokens: u64) {
        // What a backend says of a short request is mostly of the tools it comes with.
        if tokens > 0 && bytes >= BYTES_LEAST {
            self.counted = Some((bytes, tokens));
        }
    }
}

/// `part` of `whole`, taken of `all`.
fn of_whole(all: u64, part: u64, whole: u64) -> u64 {
    let exact = u128::from(all) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

fn bytes(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

impl Chat {
    /// Puts the conversation to the model, shorter where it has to be.
    pub(super) fn put(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        offers: &[Offer],
    ) -> Result<ModelReply, ChatError> {
        let mut spent = (0_u64, 0_u64);
        let holds = self.room.holds.or_else(|| port.model.holds());
        if let Some(holds) = holds
            && self.is_long(offers, holds)
        {
            let aim = self.aim(offers, holds, 0);
            // Where nothing can be left out, the backend may still take it.
            self.shorten(runtime, port, offers, aim, &mut spent)?;
        }
        let mut times = 0;
        loop {
            let messages = self.sent();
            let request = ModelRequest::new(&self.model, &messages).offering(offers);
            let sent = request.text();
            let reply = runtime.converse(self.agent, &self.model, sent.as_bytes(), |over| {
                let request = request.until(over);
                if port.watch.wants_words() {
                    let Ports { model, watch } = port;
                    model.stream(request, &mut |words| watch.heard(self.agent, words))
                } else {
                    port.model.complete(request)
                }
            })?;
            runtime.hear(self.agent, Source::Model)?;
            match reply {
                Ok(mut reply) => {
                    self.room.count(bytes(&sent), reply.tokens.0);
                    reply.tokens.0 = reply.tokens.0.saturating_add(spent.0);
                    reply.tokens.1 = reply.tokens.1.saturating_add(spent.1);
                    return Ok(reply);
                }
                Err(full @ ModelError::Full { takes, holds }) => {
                    self.room.count(bytes(&sent), takes.unwrap_or(0));
                    self.room.holds = holds.or(self.room.holds);
                    // Who does not say how much it holds is offered half, and half again.
                    let holds = self.room.holds.or_else(|| port.model.holds());
                    let holds = holds.unwrap_or_else(|| self.room.tokens(bytes(&sent)));
                    let aim = self.aim(offers, holds, times);
                    let can = times < TIMES_MAX
                        && port.watch.goes_on()
                        && self.shorten(runtime, port, offers, aim, &mut spent)?;
                    if !can {
                        return Err(full.into());
                    }
                    times += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The conversation as it is sent.
    pub(super) fn sent(&self) -> Vec<Message> {
        let room = &self.room;
        let first = self.messages.first();
        let rest = self.messages.get(room.covers.max(1)..).unwrap_or_default();
        let next = room.view.first().or_else(|| rest.first());
        let note = room.note.messages(next);
        let sent = first.into_iter().cloned().chain(note);
        let sent = sent.chain(room.view.iter().chain(rest).cloned());
        let sent = as_models_have(sent.map(|message| (message, ())));
        sent.into_iter().map(|(message, ())| message).collect()
    }

    /// One of the messages is gone, which nobody is to see again.
    pub(super) fn forget(&mut self, place: usize) {
        self.messages.remove(place);
        if place < self.room.covers {
            self.room.covers = self.room.covers.saturating_sub(1);
        }
    }

    fn length(&self, messages: &[Message], offers: &[Offer]) -> u64 {
        let request = ModelRequest::new(&self.model, messages).offering(offers);
        bytes(&request.text())
    }

    /// The length of a request with nothing but the model's place and the tools.
    fn fixed(&self, offers: &[Offer]) -> u64 {
        self.length(self.messages.get(..1).unwrap_or_default(), offers)
    }

    /// Whether a request comes near what the model holds, and is much longer than after
    /// it was shortened last.
    fn is_long(&self, offers: &[Offer], holds: u64) -> bool {
        let length = self.length(&self.sent(), offers);
        let has_grown = length > self.room.after.saturating_add(self.room.bytes(holds / 8));
        length >= BYTES_LEAST && has_grown && self.room.tokens(length) > holds - holds / 4
    }

    /// Bytes a request is to have: half of what the model holds, or, where the tools take
    /// most of that, a third of what they leave. Less each time.
    fn aim(&self, offers: &[Offer], holds: u64, times: u32) -> u64 {
        let fixed = self.fixed(offers);
        let holds = self.room.bytes(holds);
        let half = (holds / 2).saturating_sub(fixed);
        let third = holds.saturating_sub(fixed) / 3;
        fixed.saturating_add(half.max(third).checked_shr(times).unwrap_or(0))
    }

    /// Makes what is sent not much longer than `aim` bytes; whether it became shorter.
    fn shorten(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        offers: &[Offer],
        aim: u64,
        spent: &mut (u64, u64),
    ) -> Result<bool, ChatError> {
        let before = self.length(&self.sent(), offers);
        let room = aim.saturating_sub(self.fixed(offers));
        let rest = self.messages.get(self.room.covers.max(1)..);
        let mut view = self.room.view.clone();
        view.extend(rest.unwrap_or_default().iter().cloned());
        let told = bytes(&self.room.note.text());
        let cut = shorter::results(&mut view, room.saturating_sub(told));
        let gone = if shorter::length(&view).saturating_add(told) > room {
            shorter::rounds(&mut view, room / 2)
        } else {
            Vec::new()
        };
        let left_out = gone.len();
        if left_out > 0 {
            let mut note = self.room.note.clone();
            let is_work = |message: &Message| !matches!(message, Message::User(_));
            if gone.iter().any(is_work) {
                let account = self.account(runtime, port, &note, &gone, room / 2, spent)?;
                note.tells(account);
            }
            note.take_in(gone, room / 4, self.room.wish.as_deref());
            self.room.note = note;
        }
        let told = bytes(&self.room.note.text());
        let cut = cut + shorter::newest(&mut view, room.saturating_sub(told));
        self.room.view = view;
        self.room.covers = self.messages.len();
        self.room.after = self.length(&self.sent(), offers);
        if self.room.after >= before {
            return Ok(false);
        }
        let (from, to) = (self.room.tokens(before), self.room.tokens(self.room.after));
        let told = account::told((from, to), left_out, cut);
        port.watch.noted(self.agent, &told);
        Ok(true)
    }

    /// What there is to say of messages that are left out: the model's words, or, where it
    /// has none, a list.
    fn account(
        &self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        note: &Note,
        gone: &[Message],
        room: u64,
        spent: &mut (u64, u64),
    ) -> Result<account::Account, ChatError> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let list = || account::Account::Listed(account::listed(note, gone, room / 2));
        if !port.watch.goes_on() {
            return Ok(list());
        }
        let messages = account::question(note, gone, room);
        let request = ModelRequest::new(&self.model, &messages).within(ReplyLimits {
            tokens_max: Some(ACCOUNT_TOKENS_MAX),
            ..ReplyLimits::default()
        });
        let sent = request.text();
        let asked = |over: &Cancel| port.model.aside(request.until(over));
        let Ok(reply) = runtime.converse(self.agent, &self.model, sent.as_bytes(), asked) else {
            return Ok(list());
        };
        runtime.hear(self.agent, Source::Model)?;
        let Ok(reply) = reply else {
            return Ok(list());
        };
        spent.0 = spent.0.saturating_add(reply.tokens.0);
        spent.1 = spent.1.saturating_add(reply.tokens.1);
        Ok(match reply.text.trim() {
            "" => list(),
            words => account::Account::Told(shorter::head(words, room / 2).to_owned()),
        })
    }
}
