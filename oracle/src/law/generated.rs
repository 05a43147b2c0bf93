//! What a campaign deals.

use arbitrary::Unstructured;

use super::{Verdict, ensure};
use crate::case::CaseFile;
use crate::generate::{Specimen, Target};

/// Make one of the kind the first byte says, and make it again from its name.
pub fn check(bytes: &[u8]) -> Verdict {
    let Some((kind, bytes)) = bytes.split_first() else {
        return Ok(());
    };
    let Some(target) = Target::ALL.get(usize::from(*kind) % Target::ALL.len()) else {
        return Err(format!("no kind has the number {kind}"));
    };
    let Ok(specimen) = Specimen::of(*target, &mut Unstructured::new(bytes)) else {
        return Ok(());
    };
    let name = specimen.to_string();
    let Some(again) = Specimen::named(&name) else {
        return Err(format!("{name} is not read"));
    };
    let (case, made_again) = (specimen.case_file(), again.case_file());
    // The order of a call's arguments is no part of their values.
    let written = |case: &Option<CaseFile>| {
        let script = case.as_ref().map(|case| &case.script);
        serde_json::to_string(&script).map_err(|error| error.to_string())
    };
    ensure(
        case == made_again && written(&case)? == written(&made_again)?,
        || format!("{name} is made again as something else"),
    )?;
    for smaller in specimen.smaller() {
        let smaller = smaller.to_string();
        ensure(
            smaller != name && Specimen::named(&smaller).is_some(),
            || format!("{name} shrinks to {smaller}"),
        )?;
    }
    Ok(())
}
