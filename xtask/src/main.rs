//! Chores of the workspace: running the tests, the gates of continuous
//! integration, generated files.
//!
//! A chore that a person would otherwise do by hand, or that must come out the
//! same everywhere, lives here, so that no machine needs more than cargo. It
//! must never be needed to build or to use the programs.

mod agentdojo;
mod ambient;
mod bench_report;
mod campaign_report;
mod ci;
mod cmd;
mod dist;
mod engine;
mod escape;
mod filter_table;
mod house;
mod kernels;
mod licences;
mod lock;
mod models;
mod mutants;
mod place;
mod test;
mod vectors;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the hermitcrab workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Run every test, each in its own process, and the doc tests.
    Test(test::Args),
    /// Run the gates: formatting, lints, tests, documents, fuzz, benches, the oracle.
    Ci(ci::Args),
    /// Check the rules of the house that no lint knows.
    House,
    /// Run the escape suite and write its matrix into the documents.
    EscapeReport,
    /// Write what the system call filter refuses into the documents, or check it.
    FilterTable(filter_table::Args),
    /// Measure the spawn path beside its peers and write docs/benchmarks.
    BenchReport,
    /// Measure what grants cost, with ten million operations of eight threads, and write docs/benchmarks.
    GrantsReport,
    /// Measure file calls beside the same ones of Hermes, and write docs/benchmarks.
    FilesReport(bench_report::Files),
    /// Measure worlds, cases and fuzz targets, and write docs/benchmarks/campaign.md.
    CampaignReport(campaign_report::Args),
    /// Build the fuzz targets as OSS-Fuzz and ClusterFuzzLite do, and check and run each as they do.
    Engine(engine::Args),
    /// Carry out AgentDojo's tasks and attacks with the real program, and write docs/benchmarks/agentdojo.md.
    Agentdojo(agentdojo::Args),
    /// Run the sandbox's tests under other kernels, in virtual machines.
    Kernels(kernels::Args),
    /// Build llama.cpp and its server, and run the tests with real models in files.
    Models(models::Args),
    /// Change the core, or the relation, place by place and see the tests notice.
    Mutants(mutants::Args),
    /// Make a package of Debian's and an archive of the agent, to install where there is no Rust.
    Dist(dist::Args),
    /// Make the hash-pinned lock file of a Hermes version.
    Lock(lock::Args),
    /// Convert recorded rows into cases, and check that the cases are what the rows give.
    #[command(subcommand)]
    Vectors(vectors::Command),
}

fn main() -> ExitCode {
    let result = match Cli::parse().chore {
        Chore::Test(args) => test::run(&args),
        Chore::Ci(args) => ci::run(&args),
        Chore::House => house::run(),
        Chore::EscapeReport => escape::run(),
        Chore::FilterTable(args) => filter_table::run(&args),
        Chore::BenchReport => bench_report::run(),
        Chore::GrantsReport => bench_report::grants(),
        Chore::FilesReport(args) => bench_report::files(&args),
        Chore::CampaignReport(args) => campaign_report::run(&args),
        Chore::Engine(args) => engine::run(&args),
        Chore::Agentdojo(args) => agentdojo::run(&args),
        Chore::Kernels(args) => kernels::run(&args),
        Chore::Models(args) => models::run(&args),
        Chore::Mutants(args) => mutants::run(&args),
        Chore::Dist(args) => dist::run(&args),
        Chore::Lock(args) => lock::run(&args),
        Chore::Vectors(command) => vectors::run(&command),
    };
    match result {
        Ok(cmd::Passed::Yes) => ExitCode::SUCCESS,
        Ok(cmd::Passed::No) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(70)
        }
    }
}
