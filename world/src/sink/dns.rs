//! Just enough DNS: every name is the loopback.

const TYPE_A: u16 = 1;
const HEADER_BYTES: usize = 12;

/// The first question of a query.
pub(super) struct Question {
    /// The name, with dots.
    pub(super) name: String,
    kind: u16,
    /// Where the question ends in the packet.
    end: usize,
}

/// Reads the question of a query; `None` if the packet is no query.
pub(super) fn question(packet: &[u8]) -> Option<Question> {
    let mut at = HEADER_BYTES;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = packet
            .get(at..at.checked_add(length)?)
            .filter(|_| length < 64)?;
        labels.push(String::from_utf8_lossy(label).into_owned());
        at += length;
    }
    let kind = u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?);
    packet.get(at + 2..at + 4)?;
    Some(Question {
        name: labels.join("."),
        kind,
        end: at + 4,
    })
}

/// The answer to it: 127.0.0.1 for addresses, nothing (without an error) for the rest.
pub(super) fn answer(packet: &[u8], question: &Question) -> Vec<u8> {
    let answers = u16::from(question.kind == TYPE_A);
    let mut bytes = Vec::new();
    bytes.extend(packet.get(..2).unwrap_or_default());
    bytes.extend([0x85, 0x80]);
    for count in [1, answers, 0, 0] {
        bytes.extend(count.to_be_bytes());
    }
    bytes.extend(packet.get(HEADER_BYTES..question.end).unwrap_or_default());
    if answers == 1 {
        // Name by reference to the question, type A, class IN, 60 s, four bytes.
        bytes.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(kind: u8) -> Vec<u8> {
        let mut packet = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        packet.extend(b"\x04evil\x07example\x00");
        packet.extend([0, kind, 0, 1]);
        packet
    }

    #[test]
    fn an_address_question_is_answered_with_the_loopback() {
        let packet = query(1);
        let question = question(&packet).expect("a question");
        assert_eq!(question.name, "evil.example");
        let answer = answer(&packet, &question);
        assert_eq!(answer.get(..2), Some([7, 9].as_slice()));
        assert!(answer.ends_with(&[127, 0, 0, 1]));
    }

    #[test]
    fn other_questions_get_an_empty_answer() {
        let packet = query(16);
        let question = question(&packet).expect("a question");
        assert_eq!(answer(&packet, &question).len(), packet.len());
    }

    #[test]
    fn a_cut_packet_is_no_question() {
        let packet = query(1);
        for length in 0..packet.len() {
            assert!(question(&packet[..length]).is_none(), "{length}");
        }
    }
}
