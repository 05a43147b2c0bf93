//! What git notes of the files themselves.

use bisim_world::protocol::{EffectKind, FsEffect};

/// Rule `git-index`: that it is there or gone stays, its bytes do not.
pub fn without_index_bytes(effects: &mut [FsEffect]) {
    for effect in effects
        .iter_mut()
        .filter(|effect| is_index(effect) && effect.kind != EffectKind::Deleted)
    {
        effect.digest = "<own>".to_owned();
        effect.size = 0;
    }
}

/// Rule `git-index`: the effects but for an index that is written again. Who may write it
/// is asked of all effects, and not of these.
pub fn told(effects: &[FsEffect]) -> impl Iterator<Item = &FsEffect> {
    let is_again = |effect: &&FsEffect| is_index(effect) && effect.kind == EffectKind::Modified;
    effects.iter().filter(move |effect| !is_again(effect))
}

fn is_index(effect: &FsEffect) -> bool {
    effect.path.ends_with("/.git/index")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_index_only_the_bytes_are_left_out() {
        let of = |path: &str, kind, digest: &str| {
            let mut effects = [FsEffect {
                path: path.to_owned(),
                kind,
                digest: digest.to_owned(),
                size: digest.len() as u64,
                mode: 0o644,
            }];
            without_index_bytes(&mut effects);
            let [effect] = effects;
            effect
        };
        let (modified, deleted) = (EffectKind::Modified, EffectKind::Deleted);
        let index = "/home/u/proj/.git/index";
        assert_eq!(of(index, modified, "a"), of(index, modified, "bb"));
        let all = [
            of(index, modified, "a"),
            of(index, deleted, "a"),
            of(index, EffectKind::Created, "a"),
            of("/home/u/proj/index", modified, "a"),
        ];
        assert!(told(&all).eq(&all[1..]));
        assert_ne!(
            of(index, modified, "a"),
            of(index, EffectKind::Created, "a")
        );
        assert_ne!(of(index, deleted, "a"), of(index, modified, "a"));
        for other in ["/home/u/proj/index", "/home/u/proj/.git/index.lock"] {
            assert_ne!(
                of(other, modified, "a"),
                of(other, modified, "b"),
                "{other}"
            );
        }
    }
}
