//! The self-test by a program that has faults to plant, where this one has none.

use crate::ambient::Ambient;
use crate::cli::SelftestArgs;
use crate::exit;
use crate::nested_cargo;
use crate::pulse::Pulse;

/// This build has no faults to plant: have cargo make one that has.
pub(super) fn command(ambient: &Ambient, args: &SelftestArgs) -> u8 {
    let with_faults = |what: &str| {
        let mut cargo = std::process::Command::new("cargo");
        nested_cargo::apart(&mut cargo)
            .current_dir(&ambient.root)
            .args([what, "--quiet", "-p", "bisim", "--bin", "bisim"])
            .args(["--features", "planted-faults"]);
        cargo
    };
    // By itself, so that what is said meanwhile is over before the program has the word.
    let building = Pulse::start(
        "building this program with faults to plant, which takes minutes the first time",
    );
    let built = with_faults("build").status();
    drop(building);
    if let Ok(status) = &built
        && !status.success()
    {
        eprintln!(
            "error: this program cannot be built with faults to plant; what cargo says is above"
        );
        return exit::ENVIRONMENT;
    }
    let mut cargo = with_faults("run");
    cargo.args(["--", "selftest", "--hermes", &args.hermes]);
    for fault in &args.fault {
        cargo.args(["--fault", fault]);
    }
    let count = args.count.to_string();
    if args.buckets {
        cargo.args(["--buckets", "--count", &count]);
        cargo.args(["--seed", &args.seed.to_string()]);
        if let Some(file) = &args.write {
            cargo.arg("--write").arg(file);
        }
    }
    for (wanted, flag) in [(args.full, "--full"), (args.keep, "--keep")] {
        if wanted {
            cargo.arg(flag);
        }
    }
    match cargo.status() {
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(exit::INTERNAL),
        Err(error) => {
            eprintln!(
                "error: the faults are a feature of the build and cargo cannot be run: {error}\n  \
                 run `cargo run -p bisim --features planted-faults -- selftest`"
            );
            exit::ENVIRONMENT
        }
    }
}
