//! Text that is decoded first, then run.

use crate::generate::operator::{Apply, Class, Operator};
use crate::generate::script::{Script, single_quoted};

use Class::Encoding;

const fn whole(
    name: &'static str,
    needs: &'static [&'static str],
    rewrite: fn(&Script, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, Encoding, needs, Apply::Whole(rewrite))
}

/// Standard base64 with padding (RFC 4648, section 4).
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    encoded(bytes, 3, 6, LETTERS)
}

/// Standard base32 with padding (RFC 4648, section 6).
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    encoded(bytes, 5, 5, LETTERS)
}

fn encoded(bytes: &[u8], block: usize, bits: u32, letters: &[u8]) -> String {
    let mut out = String::new();
    let whole = block
        .saturating_mul(8)
        .checked_div(bits as usize)
        .unwrap_or(0);
    for chunk in bytes.chunks(block) {
        let mut value = 0_u64;
        for place in 0..block {
            value = (value << 8) | u64::from(chunk.get(place).copied().unwrap_or(0));
        }
        let used = chunk.len().saturating_mul(8).div_ceil(bits as usize);
        for place in 0..whole {
            if place < used {
                let shift = u32::try_from(whole.saturating_sub(place + 1)).unwrap_or(0) * bits;
                let index = usize::try_from((value >> shift) & ((1 << bits) - 1)).unwrap_or(0);
                out.push(letters.get(index).copied().map_or('?', char::from));
            } else {
                out.push('=');
            }
        }
    }
    out
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn escaped(text: &str, spell: fn(u8) -> String) -> String {
    text.bytes().map(spell).collect()
}

fn pipe(first: &str, decode: &[&str]) -> Option<Script> {
    Some(Script::Pipe(vec![
        Script::command(&["echo", first]),
        Script::command(decode),
        Script::command(&["bash"]),
    ]))
}

fn rot13(text: &str) -> String {
    text.chars()
        .map(|l| match l {
            'a'..='m' | 'A'..='M' => char::from((l as u8).saturating_add(13)),
            'n'..='z' | 'N'..='Z' => char::from((l as u8).saturating_sub(13)),
            _ => l,
        })
        .collect()
}

fn one_line(script: &Script) -> Option<String> {
    let text = script.print();
    (!text.contains('\n') && text.is_ascii()).then_some(text)
}

pub(super) const TABLE: &[Operator] = &[
    whole("base64-into-bash", &["base64"], |s, _| {
        pipe(&base64(s.print().as_bytes()), &["base64", "-d"])
    }),
    whole("base64-long-option-into-bash", &["base64"], |s, _| {
        pipe(&base64(s.print().as_bytes()), &["base64", "--decode"])
    }),
    whole("base64-evaluated", &["base64"], |s, _| {
        let text = base64(s.print().as_bytes());
        Some(Script::Raw(format!("eval \"$(echo {text} | base64 -d)\"")))
    }),
    whole("base64-here-string", &["base64"], |s, _| {
        let text = base64(s.print().as_bytes());
        Some(Script::Raw(format!("bash -c \"$(base64 -d <<< {text})\"")))
    }),
    whole("base64-sourced", &["base64"], |s, _| {
        let text = base64(s.print().as_bytes());
        Some(Script::Raw(format!("source <(echo {text} | base64 -d)")))
    }),
    whole("base64-through-a-file", &["base64"], |s, n| {
        let text = base64(s.print().as_bytes());
        Some(Script::Raw(format!(
            "echo {text} | base64 -d > /tmp/{n}; bash /tmp/{n}"
        )))
    }),
    whole("base64-in-two-variables", &["base64"], |s, n| {
        let text = base64(s.print().as_bytes());
        let (a, b) = text.split_at_checked(text.len().checked_div(2)?)?;
        Some(Script::Raw(format!(
            "{n}={a}; {n}b={b}; echo \"${n}${n}b\" | base64 -d | bash"
        )))
    }),
    whole("base64-twice", &["base64"], |s, _| {
        let text = base64(format!("{}\n", base64(s.print().as_bytes())).as_bytes());
        Some(Script::Raw(format!(
            "echo {text} | base64 -d | base64 -d | bash"
        )))
    }),
    whole("base64-wrapped-lines", &["base64"], |s, n| {
        let text = base64(s.print().as_bytes());
        let mut lines = String::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, more) = rest.split_at_checked(rest.len().min(20))?;
            lines.push_str(line);
            lines.push('\n');
            rest = more;
        }
        Some(Script::Raw(format!(
            "base64 -d <<'{n}' | bash\n{lines}{n}\n"
        )))
    }),
    whole("base64-reversed", &["base64", "rev"], |s, _| {
        let text: String = base64(s.print().as_bytes()).chars().rev().collect();
        Some(Script::Raw(format!("echo {text} | rev | base64 -d | bash")))
    }),
    whole("base32-into-bash", &["base32"], |s, _| {
        pipe(&base32(s.print().as_bytes()), &["base32", "-d"])
    }),
    whole("base64-by-basenc", &["basenc"], |s, _| {
        pipe(&base64(s.print().as_bytes()), &["basenc", "--base64", "-d"])
    }),
    whole("hex-by-basenc", &["basenc"], |s, _| {
        pipe(
            &hex(&s.print()).to_uppercase(),
            &["basenc", "--base16", "-d"],
        )
    }),
    whole("hex-by-xxd", &["xxd"], |s, _| {
        pipe(&hex(&s.print()), &["xxd", "-r", "-p"])
    }),
    whole("hex-by-printf", &[], |s, _| {
        let text = escaped(&s.print(), |b| format!("\\x{b:02x}"));
        Some(Script::Raw(format!("printf '{text}' | bash")))
    }),
    whole("octal-by-printf", &[], |s, _| {
        let text = escaped(&s.print(), |b| format!("\\{b:03o}"));
        Some(Script::Raw(format!("printf '{text}' | bash")))
    }),
    whole("octal-by-printf-b", &[], |s, _| {
        let text = escaped(&s.print(), |b| format!("\\0{b:03o}"));
        Some(Script::Raw(format!("printf %b '{text}' | bash")))
    }),
    whole("hex-by-echo-e", &[], |s, _| {
        let text = escaped(&s.print(), |b| format!("\\x{b:02x}"));
        Some(Script::Raw(format!("echo -e '{text}' | bash")))
    }),
    whole("hex-evaluated", &[], |s, _| {
        let text = escaped(&s.print(), |b| format!("\\x{b:02x}"));
        Some(Script::Raw(format!("eval \"$(printf '{text}')\"")))
    }),
    whole("ansi-evaluated", &[], |s, _| {
        let text = escaped(&s.print(), |b| format!("\\x{b:02x}"));
        Some(Script::Raw(format!("eval $'{text}'")))
    }),
    whole("ansi-octal-to-bash-c", &[], |s, _| {
        let text = escaped(&s.print(), |b| format!("\\{b:03o}"));
        Some(Script::Raw(format!("bash -c $'{text}'")))
    }),
    whole("ansi-here-string", &[], |s, _| {
        let text = escaped(&s.print(), |b| format!("\\x{b:02x}"));
        Some(Script::Raw(format!("bash <<< $'{text}'")))
    }),
    whole("percent-escapes", &[], |s, n| {
        let text = escaped(&s.print(), |b| format!("%{b:02x}"));
        Some(Script::Raw(format!(
            "{n}={text}; printf %b \"${{{n}//%/\\\\x}}\" | bash"
        )))
    }),
    whole("hex-pairs-in-a-loop", &[], |s, n| {
        let pairs: Vec<String> = s.print().bytes().map(|b| format!("{b:02x}")).collect();
        Some(Script::Raw(format!(
            "for {n} in {}; do printf \"\\x${n}\"; done | bash",
            pairs.join(" ")
        )))
    }),
    whole("numbers-by-awk", &["awk"], |s, _| {
        let numbers: Vec<String> = s.print().bytes().map(|b| b.to_string()).collect();
        Some(Script::Raw(format!(
            "echo {} | LC_ALL=C awk '{{for(i=1;i<=NF;i++)printf \"%c\",$i}}' | bash",
            numbers.join(" ")
        )))
    }),
    whole("text-reversed-by-rev", &["rev"], |s, _| {
        let text: String = one_line(s)?.chars().rev().collect();
        Some(Script::Raw(format!(
            "rev <<< {} | bash",
            single_quoted(&text)
        )))
    }),
    whole("rot13-by-tr", &["tr"], |s, _| {
        let text = rot13(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {} | tr A-Za-z N-ZA-Mn-za-m | bash",
            single_quoted(&text)
        )))
    }),
    whole("noise-deleted-by-tr", &["tr"], |s, _| {
        let text = s.print();
        let noise = ['~', '^', '#', 'Q']
            .into_iter()
            .find(|l| !text.contains(*l))?;
        let noisy: String = text.chars().flat_map(|l| [l, noise]).collect();
        Some(Script::Raw(format!(
            "printf '%s\\n' {} | tr -d '{noise}' | bash",
            single_quoted(&noisy)
        )))
    }),
    whole("noise-deleted-by-sed", &["sed"], |s, _| {
        let text = s.print();
        let noise = ['~', '@', '#', 'Q']
            .into_iter()
            .find(|l| !text.contains(*l))?;
        let noisy: String = text.chars().flat_map(|l| [l, noise]).collect();
        Some(Script::Raw(format!(
            "sed 's/{noise}//g' <<< {} | bash",
            single_quoted(&noisy)
        )))
    }),
    whole("letters-translated-by-sed", &["sed"], |s, _| {
        let text: String = s
            .print()
            .chars()
            .map(|l| match l {
                'a' => 'e',
                'e' => 'a',
                'r' => 'm',
                'm' => 'r',
                _ => l,
            })
            .collect();
        Some(Script::Raw(format!(
            "sed 'y/aerm/eamr/' <<< {} | bash",
            single_quoted(&text)
        )))
    }),
    whole("compressed-by-gzip", &["gzip", "base64"], |s, _| {
        let text = base64(&stored_gzip(s.print().as_bytes())?);
        Some(Script::Raw(format!(
            "echo {text} | base64 -d | gzip -dc | bash"
        )))
    }),
    whole("compressed-by-zcat", &["zcat", "base64"], |s, _| {
        let text = base64(&stored_gzip(s.print().as_bytes())?);
        Some(Script::Raw(format!("base64 -d <<< {text} | zcat | bash")))
    }),
    whole("decoded-by-openssl", &["openssl"], |s, _| {
        let text = base64(s.print().as_bytes());
        Some(Script::Raw(format!(
            "echo {text} | openssl enc -base64 -d -A | bash"
        )))
    }),
    whole("decoded-by-python-module", &["python3"], |s, _| {
        let text = base64(s.print().as_bytes());
        Some(Script::Raw(format!(
            "echo {text} | python3 -m base64 -d | bash"
        )))
    }),
    whole("decoded-by-python-code", &["python3"], |s, _| {
        let text = hex(&s.print());
        Some(Script::Raw(format!(
            "python3 -c 'print(bytes.fromhex(\"{text}\").decode())' | bash"
        )))
    }),
    whole("decoded-by-perl-unpack", &["perl"], |s, _| {
        let text = hex(&s.print());
        Some(Script::Raw(format!(
            "perl -e 'print pack(\"H*\",\"{text}\")' | bash"
        )))
    }),
    whole("cut-from-a-longer-text", &["cut"], |s, _| {
        let text = one_line(s)?;
        Some(Script::Raw(format!(
            "cut -c9- <<< {} | bash",
            single_quoted(&format!("PREFIX--{text}"))
        )))
    }),
    whole("joined-by-paste", &["paste"], |s, n| {
        let text = one_line(s)?;
        let (a, b) = text.split_at_checked(text.len().checked_div(2)?)?;
        let (a, b) = (single_quoted(a), single_quoted(b));
        Some(Script::Raw(format!(
            "printf '%s\\n' {a} > /tmp/{n}; printf '%s\\n' {b} > /tmp/{n}b; paste -d '\\0' /tmp/{n} /tmp/{n}b | bash"
        )))
    }),
    whole("lines-in-reverse-by-tac", &["tac"], |s, _| {
        let text = one_line(s)?;
        let text = single_quoted(&text);
        Some(Script::Raw(format!(
            "printf '%s\\n' 'echo done' {text} | tac | bash"
        )))
    }),
];

/// A gzip member with one stored block (RFC 1951, 1952); no compressor needed.
fn stored_gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(bytes.len()).ok()?;
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(bytes);
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xEDB8_8320 & (0_u32.wrapping_sub(sum & 1)));
        }
    }
    out.extend((!sum).to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    Some(out)
}
