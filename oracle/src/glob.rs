//! Patterns with `*`.

/// Matches `*` against any run of characters and everything else literally.
#[must_use]
pub fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else {
        return text.is_empty();
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut open = false;
    let mut last = "";
    for part in parts {
        open = true;
        last = part;
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    if !open {
        return rest.is_empty();
    }
    last.is_empty()
        || rest.is_empty()
        || text.len() >= first.len() + last.len() && text.ends_with(last)
}
