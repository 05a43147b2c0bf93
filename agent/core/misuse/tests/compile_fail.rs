//! Programs that must not compile: forging, cloning, keeping or spending a
//! permit twice, and stepping a session while something of it lives.

#[test]
fn a_permit_cannot_be_forged_cloned_kept_or_spent_twice() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*.rs");
    cases.pass("tests/compile_pass/*.rs");
}
