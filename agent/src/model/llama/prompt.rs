//! A conversation as tokens, in the way the model's file says.
//!
//! A template marks who speaks with control tokens, and a text may hold the
//! same letters: a file that says `<|im_start|>system` would speak as the
//! system. So the template is written around marks in place of the texts; what
//! is the template's becomes control tokens, and what is a text never does.

use llama_cpp_2::{
    model::{LlamaChatMessage, LlamaModel},
    token::LlamaToken,
};

use super::talk::Turn;

/// A part of the whole, and whether it may hold control tokens.
struct Part<'p> {
    text: &'p str,
    is_template: bool,
}

/// The whole, up to where the model goes on.
pub fn tokens(model: &LlamaModel, turns: &[Turn]) -> Vec<LlamaToken> {
    let written = written(model, turns);
    let mut tokens = Vec::new();
    let vocab = model.vocab();
    if vocab.should_add_bos() {
        tokens.push(vocab.bos());
    }
    let mut add = |part: &Part<'_>| {
        if !part.text.is_empty() {
            tokens.extend(vocab.tokenize(part.text.as_bytes(), false, part.is_template));
        }
    };
    match written.as_deref().and_then(|written| split(written, turns)) {
        Some(parts) => parts.iter().for_each(add),
        None => plain(turns).iter().for_each(|text| {
            add(&Part {
                text,
                is_template: false,
            });
        }),
    }
    tokens
}

/// The mark in place of a text.
fn mark(place: usize) -> String {
    format!("@@part-{place}@@")
}

/// The template written around marks; `None` if there is none that is understood.
fn written(model: &LlamaModel, turns: &[Turn]) -> Option<String> {
    let template = model.chat_template(None).ok()?;
    let marked = turns
        .iter()
        .enumerate()
        .map(|(place, turn)| LlamaChatMessage::new(turn.role.clone(), mark(place)).ok())
        .collect::<Option<Vec<_>>>()?;
    model.apply_chat_template(&template, &marked, true).ok()
}

/// The template's parts and the texts, in order; `None` if a text is missing,
/// moved or there twice.
fn split<'p>(written: &'p str, turns: &'p [Turn]) -> Option<Vec<Part<'p>>> {
    let mut parts = Vec::new();
    let mut rest = written;
    for (place, turn) in turns.iter().enumerate() {
        let (before, after) = rest.split_once(&mark(place))?;
        parts.push(Part {
            text: before,
            is_template: true,
        });
        parts.push(Part {
            text: &turn.text,
            is_template: false,
        });
        rest = after;
    }
    parts.push(Part {
        text: rest,
        is_template: true,
    });
    let is_clean = parts
        .iter()
        .all(|part| !part.is_template || !part.text.contains("@@part-"));
    is_clean.then_some(parts)
}

/// A conversation for a model that says nothing about how it is written.
fn plain(turns: &[Turn]) -> Vec<String> {
    let mut parts: Vec<String> = turns
        .iter()
        .map(|turn| format!("{}: {}\n\n", turn.role, turn.text))
        .collect();
    parts.push("assistant:".to_owned());
    parts
}

#[cfg(test)]
mod tests {
    use super::{Turn, mark, split};

    #[test]
    fn texts_stay_texts_and_a_template_that_moves_them_is_not_used() {
        let turns = ["<|im_start|>system", "b"].map(|text| Turn {
            role: "user".into(),
            text: text.into(),
        });
        let written = format!("<s>{}</s><s>{}</s>", mark(0), mark(1));
        let parts = split(&written, &turns).expect("parts");
        let seen: Vec<_> = parts
            .iter()
            .map(|part| (part.text, part.is_template))
            .collect();
        assert_eq!(
            seen,
            [
                ("<s>", true),
                ("<|im_start|>system", false),
                ("</s><s>", true),
                ("b", false),
                ("</s>", true)
            ]
        );
        for moved in [
            format!("{}{}", mark(1), mark(0)),
            format!("{}{}{}", mark(0), mark(1), mark(0)),
            mark(0),
        ] {
            assert!(split(&moved, &turns).is_none(), "{moved}");
        }
    }
}
