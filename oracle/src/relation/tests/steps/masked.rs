//! What is masked of an effect that Hermes varies in: its content, and nothing else of it.

use super::*;

#[test]
fn of_an_effect_only_the_content_is_masked() {
    let noisy = mask_of("", "/home/u/a");
    let made = |digest: &str, mode: u32, kind: EffectKind| {
        let mut seen = with("/home/u/a", digest);
        seen.delta[0].mode = mode;
        seen.delta[0].kind = kind;
        seen
    };
    let hermes = made("x", 0o644, EffectKind::Created);
    for (agent, expected) in [
        (made("x", 0o644, EffectKind::Created), Finding::Equal),
        (made("y", 0o644, EffectKind::Created), Finding::EqualMasked),
        (made("y", 0o666, EffectKind::Created), Finding::Different),
        (made("y", 0o644, EffectKind::Modified), Finding::Different),
    ] {
        assert_eq!(
            serve(&hermes, &agent, &noisy, false).0,
            expected,
            "{agent:?}"
        );
    }
}
