use proptest::prelude::*;

use super::*;

const SIZE: (u16, u16) = (6, 20);
const KEPT: usize = 10_000;

/// A terminal with rows that were there before, and its cursor in the third.
fn terminal() -> Parser {
    let (rows, columns) = size_of(SIZE);
    let mut terminal = Parser::new(rows, columns, KEPT);
    terminal.process(b"earlier\r\nmore\r\n");
    terminal
}

/// What stands on a terminal and above it, letter by letter.
fn rows(terminal: &mut Parser) -> Vec<String> {
    let screen = terminal.screen_mut();
    let (_, columns) = screen.size();
    let mut rows = Vec::new();
    for above in (1..=screen.scrollback_len()).rev() {
        screen.set_scrollback(above);
        rows.extend(screen.rows(0, columns.get()).next());
    }
    screen.set_scrollback(0);
    rows.extend(screen.rows(0, columns.get()));
    // Blanks at the end of a row are nothing, or were written: nobody sees which.
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
}

/// What is sent for these pieces, with the last of it.
fn drawn(pieces: &[Vec<u8>]) -> (Drawn, Vec<String>) {
    let mut drawn = Drawn::new(SIZE, (2, 0));
    let sent = pieces.iter().map(|piece| drawn.take(piece).0).collect();
    (drawn, sent)
}

/// Why this is not to reach a person's terminal, if it is not.
fn odd(sent: &str) -> Option<String> {
    const MODES: [&str; 9] = [
        "?1", "?9", "?25", "?1000", "?1002", "?1003", "?1006", "?1049", "?2004",
    ];
    let mut rest = sent.chars();
    while let Some(letter) = rest.next() {
        if !letter.is_control() || matches!(letter, '\n' | '\r' | '\u{8}' | '\u{7}') {
            if drawn_as(letter) != Some(letter) {
                return Some(format!("the letter {letter:?}"));
            }
            continue;
        }
        if letter != '\u{1b}' {
            return Some(format!("the control {letter:?}"));
        }
        match rest.next() {
            Some('=' | '>' | '7' | '8') => continue,
            Some('[') => {}
            other => return Some(format!("an escape before {other:?}")),
        }
        let mut parameters = String::new();
        let end = loop {
            match rest.next() {
                Some(letter) if letter.is_ascii_digit() || ";?: ".contains(letter) => {
                    parameters.push(letter);
                }
                end => break end,
            }
        };
        let is_known = match end {
            Some('h' | 'l') => MODES.contains(&&*parameters) || parameters == "?2026",
            Some('q') => parameters.ends_with(' '),
            Some('m' | 'H' | 'A' | 'B' | 'C' | 'D' | 'G' | 'J' | 'K' | 'X' | 'd') => {
                !parameters.contains('?')
            }
            _ => false,
        };
        if !is_known {
            return Some(format!("the sequence {parameters:?}{end:?}"));
        }
    }
    None
}

#[test]
fn a_long_listing_stands_on_the_terminal_and_above_it_as_if_it_had_been_written_there() {
    let mut text = String::new();
    for line in 0..40 {
        text += &format!("\u{1b}[3{}mline {line}\u{1b}[m\r\n", line % 8);
    }
    text += "and one row that is longer than the terminal is wide, and goes on";
    for pieces in [
        vec![text.clone().into_bytes()],
        text.as_bytes().chunks(7).map(<[u8]>::to_vec).collect(),
    ] {
        let mut meant = terminal();
        meant.process(text.as_bytes());
        let mut shown = terminal();
        for sent in drawn(&pieces).1 {
            shown.process(sent.as_bytes());
        }
        assert_eq!(rows(&mut shown), rows(&mut meant));
        assert_eq!(
            shown.screen().contents_formatted(),
            meant.screen().contents_formatted()
        );
        assert_eq!(rows(&mut shown)[..3], ["earlier", "more", "line 0"]);
    }
}

#[test]
fn what_stood_there_before_stays_until_a_program_clears_it() {
    let mut shown = terminal();
    let mut drawn = Drawn::new(SIZE, (2, 0));
    shown.process(drawn.take(b"here").0.as_bytes());
    assert_eq!(shown.screen().contents(), "earlier\nmore\nhere");
    shown.process(drawn.take(b"\x1b[1;1H\x1b[3Mx").0.as_bytes());
    assert_eq!(shown.screen().contents().trim_end(), "x");
    let mut shown = terminal();
    let mut drawn = Drawn::new(SIZE, (2, 0));
    shown.process(drawn.take(b"\x1b[2J\x1b[Hnew").0.as_bytes());
    assert_eq!(shown.screen().contents().trim_end(), "new");
}

#[test]
fn nothing_goes_through_that_asks_or_sets_the_terminal_and_what_is_asked_is_answered_here() {
    let title = b"\x1b]0;title\x07\x1b]2;title\x1b\\".as_slice();
    let clipboard = b"\x1b]52;c;aGVsbG8=\x07\x1b]52;c;?\x07";
    let link = b"\x1b]8;;file:///etc\x1b\\here\x1b]8;;\x1b\\";
    let colours = b"\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;red\x07\x1b]104\x07";
    let strings = b"\x1bPtmux;x\x1b\\\x1bP$qm\x1b\\\x1b_Gi=1;AAAA\x1b\\\x1b^pm\x1b\\\x1bX\x1b\\";
    let modes = b"\x1b[?5h\x1b[?69h\x1b[?1004h\x1b[?1007h\x1b[20h\x1b[>4;2m\x1b[>1u\x1b[=1u\x1b[4h";
    let asks = b"\x1b[21t\x1b[18t\x1b[?1$p\x1b[?u\x1b[>q\x1b[?15n\x1b[14t\x1b[x\x05\x1bZ";
    let charsets = b"\x1b(0qqq\x1b(B\x0eqqq\x0f\x1b*A\x1bn\x1b#8\x1b%G";
    let prints = b"\x1b[5i\x1b[?5i\x1b[4i\x1b[!p\x1b[61\"p\x1b[1$}";
    let letters = "\u{202e}\u{200b}\u{9b}31m\u{90}\u{2066}\u{10fffd}".as_bytes();
    for one in [
        title, clipboard, link, colours, strings, modes, asks, charsets, prints, letters,
    ] {
        let (_, sent) = drawn(&[one.to_vec()]);
        assert_eq!(
            sent.iter().find_map(|sent| odd(sent)),
            None,
            "{}",
            one.escape_ascii()
        );
    }
    let mut drawn = Drawn::new(SIZE, (2, 0));
    let (sent, answers) = drawn.take(b"ab\x1b[6n\x1b[5n\x1b[c\x1b[0c\x1b[>c");
    assert!(sent.contains("ab"));
    assert_eq!(
        answers.escape_ascii().to_string(),
        "\\x1b[3;3R\\x1b[0n\\x1b[?1;2c\\x1b[?1;2c\\x1b[>0;0;0c"
    );
    // One that never ends is waited for no more than any other terminal does.
    let (sent, answers) = drawn.take(b"\x1b]52;c;");
    assert_eq!((sent.as_str(), answers.as_slice()), ("", &b""[..]));
    assert_eq!(drawn.take(b"\x07").0, "");
    assert_eq!(drawn.take(b"\x07\x07\x07").0, "\u{7}", "it rings once");
}

#[test]
fn at_its_end_the_terminal_is_as_a_program_finds_one() {
    let mut shown = terminal();
    let mut drawn = Drawn::new(SIZE, (2, 0));
    let modes = b"on the usual screen\x1b[?1049h\x1b[?1h\x1b=\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[?25l\x1b[4 q\x1b[31;44mother";
    shown.process(drawn.take(modes).0.as_bytes());
    assert!(shown.screen().alternate_screen() && shown.screen().bracketed_paste());
    assert!(shown.screen().hide_cursor() && shown.screen().application_cursor());
    shown.process(drawn.end().as_bytes());
    let screen = shown.screen();
    let fresh = terminal();
    assert_eq!(screen.input_mode_diff(fresh.screen()), "");
    assert_eq!(
        screen.attributes_formatted(),
        fresh.screen().attributes_formatted()
    );
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
    assert_eq!(screen.contents(), "earlier\nmore\non the usual screen");
    assert_eq!(screen.cursor_position(), (3, 0));
}

#[test]
fn where_it_ends_above_what_it_drew_the_cursor_goes_below() {
    for (text, place) in [
        ("", (2, 0)),
        ("one\r\n", (3, 0)),
        ("one\r\ntwo\r\nthree\u{1b}[3;2H", (5, 0)),
        ("1\r\n2\r\n3\r\n4\r\n5\u{1b}[H", (5, 0)),
    ] {
        let mut shown = terminal();
        let mut drawn = Drawn::new(SIZE, (2, 0));
        shown.process(drawn.take(text.as_bytes()).0.as_bytes());
        shown.process(drawn.end().as_bytes());
        assert_eq!(shown.screen().cursor_position(), place, "{text:?}");
    }
}

#[test]
fn another_size_is_drawn_as_the_program_has_it() {
    let mut drawn = Drawn::new(SIZE, (2, 0));
    let mut shown = terminal();
    shown.process(drawn.take(b"\x1b[?1049hsome words").0.as_bytes());
    for size in [(10, 40), (2, 5), (1, 1), (0, 0), (u16::MAX, 3), (6, 20)] {
        let (rows, columns) = size_of(size);
        shown.set_size(rows, columns);
        shown.process(b"\x1b[2Jnobody knows");
        shown.process(drawn.resize(size).as_bytes());
        assert_eq!(
            shown.screen().contents_formatted(),
            drawn.theirs.screen().contents_formatted(),
            "{size:?}"
        );
    }
    shown.process(drawn.take(b"\x1b[?1049lback").0.as_bytes());
    assert_eq!(
        shown.screen().contents(),
        drawn
            .theirs
            .screen()
            .contents()
            .replace(BEFORE, " ")
            .trim_end()
    );
}

/// What a program may write, sensible and not, but for the letter that resets a terminal (RIS),
/// which would take away what stands above: that stays on ours.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    const WORDS: [&str; 34] = [
        "a",
        "some words ",
        "漢字",
        "e\u{301}",
        "🦀",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        "\t",
        "\u{8}",
        "\u{7}",
        "\u{1b}[2J",
        "\u{1b}[K",
        "\u{1b}[1K",
        "\u{1b}[L",
        "\u{1b}[2M",
        "\u{1b}[3P",
        "\u{1b}[4@",
        "\u{1b}[3X",
        "\u{1b}[S",
        "\u{1b}[T",
        "\u{1b}M",
        "\u{1b}7",
        "\u{1b}8",
        "\u{1b}[?1049h",
        "\u{1b}[?1049l",
        "\u{1b}[2;4r",
        "\u{1b}[r",
        "\u{1b}[?2004h",
        "\u{1b}[?25l",
        "\u{1b}[?25h",
        "\u{1b}]0;t\u{7}",
        "\u{1b}[J",
    ];
    let word = prop_oneof![
        8 => proptest::sample::select(WORDS.as_slice()).prop_map(|word| word.as_bytes().to_vec()),
        2 => (0_u16..9, 0_u16..30).prop_map(|(row, column)| format!("\u{1b}[{row};{column}H").into_bytes()),
        2 => proptest::sample::select([0_u16, 1, 4, 7, 31, 44, 97].as_slice()).prop_map(|code| format!("\u{1b}[{code}m").into_bytes()),
        1 => proptest::collection::vec(any::<u8>().prop_map(|byte| if byte == b'c' { b'C' } else { byte }), 0..4),
    ];
    let piece = proptest::collection::vec(word, 0..12).prop_map(|words| words.concat());
    proptest::collection::vec(piece, 0..12)
}

proptest! {
    #[test]
    fn whatever_is_written_stands_there_as_if_it_had_been_written_to_the_terminal_itself(pieces in pieces()) {
        // What stood there before moves along with what a program moves, and here it cannot.
        let mut drawn = Drawn::new(SIZE, (0, 0));
        let (rows_of, columns) = size_of(SIZE);
        let mut shown = Parser::new(rows_of, columns, KEPT);
        let mut meant = Parser::new(rows_of, columns, KEPT);
        for piece in &pieces {
            let (sent, _) = drawn.take(piece);
            prop_assert_eq!(odd(&sent), None);
            shown.process(sent.as_bytes());
        }
        let mut letters = Letters::default();
        for piece in &pieces {
            let text: String = letters.take(piece).chars().filter_map(drawn_as).collect();
            meant.process(text.as_bytes());
        }
        prop_assert_eq!(shown.screen().contents_formatted(), meant.screen().contents_formatted());
        prop_assert_eq!(rows(&mut shown), rows(&mut meant));
    }
}
