use std::collections::BTreeSet;

use arbitrary::{Arbitrary as _, Unstructured};
use proptest::prelude::*;

use super::*;

/// Every operator with the first seed and salt it applies to.
fn singles() -> Vec<(Variant, Rendered)> {
    let mut out = Vec::new();
    for operator in operators::all() {
        let found = SEEDS.iter().find_map(|seed| {
            (0..16).find_map(|salt| {
                let chain = vec![Link {
                    operator,
                    salt: Salt(salt * 4099),
                }];
                let variant = Variant { seed, chain };
                variant.render().map(|rendered| (variant, rendered))
            })
        });
        out.push(found.unwrap_or_else(|| panic!("{} applies to no seed", operator.name)));
    }
    out
}

#[test]
fn there_are_at_least_250_operators_in_24_classes_and_each_applies_somewhere() {
    let names: BTreeSet<&str> = operators::all().map(|operator| operator.name).collect();
    assert_eq!(
        names.len(),
        operators::all().count(),
        "a name is used twice"
    );
    assert!(names.len() >= 250, "{}", names.len());
    let classes: BTreeSet<Class> = operators::all().map(|operator| operator.class).collect();
    assert_eq!(
        classes.len(),
        Class::ALL.len(),
        "a class without an operator"
    );
    assert!(classes.len() >= 24);
    assert_eq!(singles().len(), names.len());
}

#[test]
fn seeds_have_unique_names_and_a_variant_without_operators_is_the_seed() {
    let names: BTreeSet<&str> = SEEDS.iter().map(|seed| seed.name).collect();
    assert_eq!(names.len(), SEEDS.len());
    for seed in SEEDS {
        let plain = Variant {
            seed,
            chain: Vec::new(),
        }
        .render()
        .unwrap();
        assert_eq!(plain.command, seed.script().print());
    }
}

#[test]
fn every_operator_changes_the_text() {
    for (variant, rendered) in singles() {
        assert_ne!(rendered.command, variant.seed.script().print(), "{variant}");
    }
}

#[test]
fn a_here_document_ends_its_line_whatever_is_around_it() {
    for around in [
        "if-then",
        "into-a-pipe",
        "subshell",
        "in-the-background",
        "trailing-semicolon",
    ] {
        let name = format!("delete-file+here-document-to-bash~0+{around}~0");
        let text = Variant::named(&name).unwrap().render().unwrap().command;
        for line in text.lines() {
            assert!(!line.trim_start().starts_with(';'), "{around}: {text:?}");
            assert!(!line.trim_start().starts_with('|'), "{around}: {text:?}");
        }
        assert!(
            text.lines().any(|line| line.starts_with("zq")),
            "{around}: {text:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_variant_is_replayed_from_its_name_alone(
        bytes in proptest::collection::vec(any::<u8>(), 0..64)
    ) {
        let variant = Variant::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
        let again = Variant::named(&variant.to_string()).unwrap();
        prop_assert_eq!(again.render(), variant.render());
        for smaller in variant.smaller() {
            prop_assert!(smaller.chain.len() < variant.chain.len());
        }
    }

    #[test]
    fn any_name_is_read_or_refused(name in "[a-z~+0-9-]{0,60}") {
        if let Some(variant) = Variant::named(&name) {
            prop_assert!(variant.chain.len() <= DEPTH_MAX);
        }
    }
}
