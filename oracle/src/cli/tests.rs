use super::*;

#[test]
fn the_shards_of_any_number_are_the_whole_and_disjoint() {
    for parts in 1..9 {
        for place in 0..50 {
            let takers = (1..=parts)
                .filter(|part| Shard { part: *part, parts }.takes(place))
                .count();
            assert_eq!(takers, 1);
        }
    }
}

/// A run of no workers judges nothing, and a script goes by the codes.
#[test]
fn no_workers_are_refused_and_what_judges_lists_its_codes() {
    use clap::CommandFactory as _;
    for words in [["check", "--jobs", "0"], ["leaks", "--jobs", "0"]] {
        let read = Cli::try_parse_from(["bisim"].into_iter().chain(words));
        assert!(read.is_err(), "{words:?}");
    }
    for name in [
        "check",
        "doctor",
        "selftest",
        "leaks",
        "speed",
        "fuzz",
        "benign",
        "patterns",
        "operators",
        "replay",
        "merge",
        "report",
        "migrate",
        "shadow",
    ] {
        let command = Cli::command();
        let help = command
            .find_subcommand(name)
            .and_then(clap::Command::get_after_help);
        let help = help.map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Exit codes:\n   0  "), "{name}: {help}");
    }
}

#[test]
fn a_release_nobody_pinned_is_a_wrong_command_line_to_every_command() {
    for words in [
        "check",
        "doctor",
        "selftest",
        "leaks",
        "speed",
        "fuzz",
        "benign",
        "patterns",
        "replay x",
        "migrate --hermes-home x",
        "shadow --hermes-home x",
    ] {
        let words = ["bisim"].into_iter().chain(words.split(' '));
        let error = Cli::try_parse_from(words.chain(["--hermes", "0.18"])).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("known: 0.19.0"), "{said}");
    }
}

#[test]
fn shards_and_times_are_read_strictly() {
    assert_eq!(parse_shard("2/3"), Ok(Shard { part: 2, parts: 3 }));
    for wrong in ["0/3", "4/3", "1", "a/b", "1/0", "/"] {
        assert!(parse_shard(wrong).is_err(), "{wrong}");
    }
    for (time, seconds) in [("10m", 600), ("30", 30), ("90s", 90), ("1h", 3600)] {
        assert_eq!(parse_time(time), Ok(Duration::from_secs(seconds)));
    }
    for wrong in ["", "m", "0s", "0h", "-1s", "1.5h", "99999999999999999999h"] {
        assert!(parse_time(wrong).is_err(), "{wrong}");
    }
}
