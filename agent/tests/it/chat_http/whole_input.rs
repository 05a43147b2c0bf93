//! All of the standard input as one message.

use super::{attached::with_input, backend, bench, hermitcrab, says};

#[test]
fn a_dash_says_all_of_the_standard_input_at_once_and_nothing_is_never_said() {
    let dir = bench();
    let (base, asked) = backend(vec![says("hello")]);
    let words = "what is wrong?\n\nerror: one\nerror: two\n";
    let arguments = ["chat", "--model", "m", "--base-url", &base, "-"];
    let output = with_input(dir.path(), &arguments, words);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let asked = asked.join().unwrap();
    let [(_, request)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let messages = request["messages"].as_array().unwrap();
    let said = messages.iter().find(|one| one["role"] == "user").unwrap();
    assert_eq!(said["content"], words);
    // What is empty is not worth a request.
    for empty in ["", " ", "-"] {
        let refused = hermitcrab(
            dir.path(),
            &["chat", "--model", "m", "--base-url", &base, empty],
        );
        assert_eq!(refused.status.code(), Some(64), "{refused:?}");
    }
}
