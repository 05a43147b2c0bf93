//! What a campaign deals.

use arbitrary::Unstructured;

use super::{Verdict, ensure};
use crate::generate::{Specimen, Target};

/// Make one of each kind, and make it again from its name.
pub fn check(bytes: &[u8]) -> Verdict {
    for target in Target::ALL {
        let Ok(specimen) = Specimen::of(target, &mut Unstructured::new(bytes)) else {
            continue;
        };
        let name = specimen.to_string();
        let Some(again) = Specimen::named(&name) else {
            return Err(format!("{name} is not read"));
        };
        let script = |specimen: &Specimen| {
            specimen
                .case_file()
                .map(|case| serde_json::to_string(&case).map_err(|error| error.to_string()))
                .transpose()
        };
        ensure(script(&again)? == script(&specimen)?, || {
            format!("{name} is made again as something else")
        })?;
        for smaller in specimen.smaller() {
            let smaller = smaller.to_string();
            ensure(
                smaller != name && Specimen::named(&smaller).is_some(),
                || format!("{name} shrinks to {smaller}"),
            )?;
        }
    }
    Ok(())
}
