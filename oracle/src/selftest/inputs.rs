//! What the laws are asked about to find a planted fault: the same in every run.

/// How many inputs each law is asked about.
const NOISE_INPUTS: u32 = 20_000;
/// The same, of a law that works on a disk.
const NOISE_INPUTS_ON_DISK: u32 = 600;

/// How many inputs this law is asked about beside those somebody thought out.
pub(super) fn count(law: &str) -> u32 {
    match law {
        "journal" => NOISE_INPUTS_ON_DISK,
        _ => NOISE_INPUTS,
    }
}

/// Pieces that mean something to readers of paths and lists.
const PIECES: [&str; 12] = [
    "/", "/", ".", "..", "a", "b", "ab", "\0", "\n", "~", "\u{e9}", LONG,
];
/// Longer than a name may be.
const LONG: &str = match std::str::from_utf8(&[b'n'; 300]) {
    Ok(long) => long,
    Err(_) => "n",
};

/// Inputs somebody thought out for this law, as they are: all that it is asked first.
pub(super) fn thought_out(law: &str) -> &'static [&'static [u8]] {
    match law {
        "session" => &SEEDS,
        _ => &[],
    }
}

/// Inputs of the law that takes the longest to reach by noise.
const SEEDS: [&[u8]; 8] = [
    include_bytes!("../../../fuzz/seeds/session/deadline-then-revoke"),
    include_bytes!("../../../fuzz/seeds/session/mixed-0"),
    include_bytes!("../../../fuzz/seeds/session/mixed-1"),
    include_bytes!("../../../fuzz/seeds/session/mixed-2"),
    include_bytes!("../../../fuzz/seeds/session/mixed-3"),
    include_bytes!("../../../fuzz/seeds/session/mixed-4"),
    include_bytes!("../../../fuzz/seeds/session/mixed-5"),
    include_bytes!("../../../fuzz/seeds/session/revoked-under-a-child"),
];

/// One of the seeds with a few of its bytes replaced.
fn near_a_seed(noise: &[u8]) -> Vec<u8> {
    let mut noise = noise.iter().map(|byte| usize::from(*byte));
    let mut next = || noise.next().unwrap_or(0);
    let mut seed = SEEDS
        .get(next() % SEEDS.len())
        .map_or(Vec::new(), |seed| seed.to_vec());
    for _ in 0..next() % 8 {
        let at = (next() << 8 | next()).checked_rem(seed.len()).unwrap_or(0);
        let value = u8::try_from(next() & 0xFF).unwrap_or(0);
        if let Some(byte) = seed.get_mut(at) {
            *byte = value;
        }
    }
    seed
}

/// Bytes that look like noise, one of the seeds with a few bytes changed, or
/// few pieces in some order, in turn; the same in every run.
pub(super) fn noise(number: u32) -> Vec<u8> {
    let bytes = noise_only(number / 3);
    match number % 3 {
        0 => return bytes,
        1 => return near_a_seed(&bytes),
        _ => {}
    }
    let count = bytes.first().map_or(0, |byte| usize::from(byte % 12));
    bytes
        .iter()
        .skip(1)
        .take(count)
        .filter_map(|byte| PIECES.get(usize::from(*byte) % PIECES.len()))
        .flat_map(|piece| piece.bytes())
        .collect()
}

fn noise_only(number: u32) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    (0..16_u32)
        .flat_map(|block| {
            let mut input = number.to_le_bytes().to_vec();
            input.extend(block.to_le_bytes());
            Vec::from_iter(Sha256::digest(&input))
        })
        .collect()
}
