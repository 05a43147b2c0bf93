//! The same table through seccompiler: slower programs, and the judge of ours.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use nix::libc;

use super::table::{Action, Entry, Ids, REVIEWED, When};

/// One program for each action, and one that knows only the reviewed numbers;
/// the strictest verdict counts, as in the kernel.
pub(super) fn programs(rows: &[&Entry], ids: Ids) -> Vec<BpfProgram> {
    let mut programs: Vec<BpfProgram> = [Action::Kill, Action::Refuse, Action::Absent]
        .into_iter()
        .map(|action| refusing(rows.iter().filter(|row| row.action == action), action, ids))
        .collect();
    let known = REVIEWED
        .iter()
        .flat_map(|(first, last)| *first..=*last)
        .map(|number| (i64::from(number), Vec::new()))
        .collect();
    programs.push(compile(
        known,
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        SeccompAction::Allow,
    ));
    programs
}

fn refusing<'a>(rows: impl Iterator<Item = &'a &'a Entry>, action: Action, ids: Ids) -> BpfProgram {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for row in rows {
        let for_call = rules.entry(row.call).or_default();
        match row.when {
            When::Always => {}
            When::Equals(argument, value) => {
                for_call.push(rule(vec![condition(argument, SeccompCmpOp::Eq, value)]));
            }
            When::MaskedEquals(argument, mask, value) => for_call.push(rule(vec![condition(
                argument,
                SeccompCmpOp::MaskedEq(u64::from(mask)),
                value,
            )])),
            When::NoneOf(argument, values) => for_call.push(none_of(argument, values)),
            When::NotOwn(argument, own) => for_call.push(none_of(argument, &ids.of(own))),
            When::AnyBit(argument, bits) => {
                for bit in (0..32).map(|shift| 1_u32 << shift) {
                    if bits & bit != 0 {
                        let has = SeccompCmpOp::MaskedEq(u64::from(bit));
                        for_call.push(rule(vec![condition(argument, has, bit)]));
                    }
                }
            }
        }
    }
    let on_match = match action {
        Action::Kill => SeccompAction::KillProcess,
        Action::Refuse => SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        Action::Absent => SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
    };
    compile(rules, SeccompAction::Allow, on_match)
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    on_match: SeccompAction,
) -> BpfProgram {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    SeccompFilter::new(rules, otherwise, on_match, architecture)
        .and_then(BpfProgram::try_from)
        .unwrap()
}

fn none_of(argument: u8, values: &[u32]) -> SeccompRule {
    let differs = |value: &u32| condition(argument, SeccompCmpOp::Ne, *value);
    rule(values.iter().map(differs).collect())
}

fn rule(conditions: Vec<SeccompCondition>) -> SeccompRule {
    SeccompRule::new(conditions).unwrap()
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u32) -> SeccompCondition {
    SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        operator,
        u64::from(value),
    )
    .unwrap()
}
