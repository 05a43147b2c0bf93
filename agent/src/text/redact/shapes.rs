//! Tokens that are known by how they begin.

/// Letters a token consists of after its prefix.
#[derive(Clone, Copy)]
enum Letters {
    /// Letters and digits.
    Plain,
    /// And `-`.
    Dash,
    /// And `_`.
    Low,
    /// And `_` and `-`.
    Both,
    /// And `_`, `-`, `=`.
    Padded,
    /// Capital letters and digits.
    Capital,
}

impl Letters {
    fn holds(self, byte: u8) -> bool {
        match self {
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Dash => byte.is_ascii_alphanumeric() || byte == b'-',
            Self::Low => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Both => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
            Self::Padded => Self::Both.holds(byte) || byte == b'=',
            Self::Capital => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        }
    }
}

/// Prefix, what follows it, and how many letters at least.
const SHAPES: &[(&str, Letters, usize)] = &[
    ("sk-", Letters::Both, 10),
    ("ghp_", Letters::Plain, 10),
    ("github_pat_", Letters::Low, 10),
    ("gho_", Letters::Plain, 10),
    ("ghu_", Letters::Plain, 10),
    ("ghs_", Letters::Plain, 10),
    ("ghr_", Letters::Plain, 10),
    ("xapp-", Letters::Dash, 12),
    ("xoxb-", Letters::Dash, 10),
    ("xoxa-", Letters::Dash, 10),
    ("xoxp-", Letters::Dash, 10),
    ("xoxr-", Letters::Dash, 10),
    ("xoxs-", Letters::Dash, 10),
    ("AIza", Letters::Both, 30),
    ("pplx-", Letters::Plain, 10),
    ("fal_", Letters::Both, 10),
    ("fc-", Letters::Plain, 10),
    ("bb_live_", Letters::Both, 10),
    ("gAAAA", Letters::Padded, 20),
    ("AKIA", Letters::Capital, 16),
    ("sk_live_", Letters::Plain, 10),
    ("sk_test_", Letters::Plain, 10),
    ("rk_live_", Letters::Plain, 10),
    ("SG.", Letters::Both, 10),
    ("hf_", Letters::Plain, 10),
    ("r8_", Letters::Plain, 10),
    ("npm_", Letters::Plain, 10),
    ("pypi-", Letters::Both, 10),
    ("dop_v1_", Letters::Plain, 10),
    ("doo_v1_", Letters::Plain, 10),
    ("am_", Letters::Both, 10),
    ("sk_", Letters::Low, 10),
    ("tvly-", Letters::Plain, 10),
    ("exa_", Letters::Plain, 10),
    ("gsk_", Letters::Plain, 10),
    ("syt_", Letters::Plain, 10),
    ("retaindb_", Letters::Plain, 10),
    ("hsk-", Letters::Plain, 10),
    ("mem0_", Letters::Plain, 10),
    ("brv_", Letters::Plain, 10),
    ("xai-", Letters::Plain, 30),
    ("ntn_", Letters::Plain, 10),
    ("fw-", Letters::Plain, 30),
    ("fw_", Letters::Plain, 30),
    ("fpk_", Letters::Plain, 30),
];

/// A bit for each letter that stands `at` this place in some prefix: nearly
/// every word fails at one of its first letters.
const fn letters_at(at: usize) -> u128 {
    let mut letters = 0;
    let mut rest = SHAPES;
    while let [(prefix, ..), others @ ..] = rest {
        if at < prefix.len() {
            let (_, from) = prefix.as_bytes().split_at(at);
            if let [letter, ..] = from {
                letters |= 1 << (*letter & 127);
            }
        } else {
            letters = u128::MAX;
        }
        rest = others;
    }
    letters
}

const FIRST: u128 = letters_at(0);
const SECOND: u128 = letters_at(1);
const THIRD: u128 = letters_at(2);

fn may_begin(rest: &str) -> bool {
    let holds = |letters: u128, byte: u8| byte < 128 && letters & (1 << byte) != 0;
    match rest.as_bytes() {
        [first, second, third, ..] => {
            holds(FIRST, *first) && holds(SECOND, *second) && holds(THIRD, *third)
        }
        _ => false,
    }
}

/// The family's name and the length of the token that starts here.
fn token(rest: &str) -> Option<(&'static str, usize)> {
    if !may_begin(rest) {
        return None;
    }
    SHAPES.iter().find_map(|(prefix, letters, least)| {
        let body = rest.strip_prefix(prefix)?;
        let run = body.bytes().take_while(|byte| letters.holds(*byte)).count();
        let next = body.as_bytes().get(run).copied();
        let ends = !next.is_some_and(|byte| Letters::Both.holds(byte));
        let fits = run >= *least && !(matches!(letters, Letters::Capital) && run != *least);
        // The families of chat tokens share one name.
        let label = if prefix.starts_with("xox") {
            "xox"
        } else {
            prefix.trim_end_matches('.')
        };
        (ends && fits).then_some((label, prefix.len() + run))
    })
}

/// The text with every token replaced by `mask(family, token)`.
pub fn masked(text: &str, mask: impl Fn(&str, &str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within_word = false;
    let (mut copied, mut at) = (0, 0);
    while let Some(byte) = text.as_bytes().get(at).copied() {
        // A token begins with a letter, so `at` is no middle of one there.
        if !within_word
            && byte.is_ascii_alphabetic()
            && let Some(rest) = text.get(at..)
            && let Some((prefix, length)) = token(rest)
        {
            out.push_str(text.get(copied..at).unwrap_or_default());
            out.push_str(&mask(prefix, rest.get(..length).unwrap_or_default()));
            at += length;
            copied = at;
            within_word = true;
            continue;
        }
        within_word = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        at += 1;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::{SHAPES, masked, may_begin};

    #[test]
    fn the_first_look_at_a_word_misses_no_prefix() {
        for (prefix, ..) in SHAPES {
            assert!(prefix.len() >= 3, "{prefix}");
            assert!(may_begin(prefix), "{prefix}");
        }
        for word in ["", "s", "sk", "second", "\u{e9}\u{e9}", "zzz"] {
            assert!(!may_begin(word), "{word}");
        }
    }

    #[test]
    fn what_stands_around_a_token_is_kept_letter_for_letter() {
        let token = "ghp_0123456789ab";
        for (text, expected) in [
            (format!("\u{e9} {token}\u{e9}\n"), "\u{e9} <ghp_>\u{e9}\n"),
            (format!("{token} {token}"), "<ghp_> <ghp_>"),
            (format!("x{token}"), "xghp_0123456789ab"),
            (format!("\u{e9}{token}"), "\u{e9}<ghp_>"),
            ("nothing".to_owned(), "nothing"),
        ] {
            assert_eq!(masked(&text, |family, _| format!("<{family}>")), expected);
        }
    }
}
