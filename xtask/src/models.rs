//! `cargo xtask models`: real models in real files, and llama.cpp's own server.
//!
//! Outside the usual tests, because it compiles llama.cpp twice: inside the
//! program (the feature `llama`) and as the server a person would use, from the
//! sources in its Python binding's package. The server is built once and kept
//! in the cache. What is downloaded is checked against the hash written here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::ambient;
use crate::cmd::{self, Passed};

/// The package whose sources hold the server.
const PACKAGE: &str = "llama-cpp-python";
const VERSION: &str = "0.3.36";
const SHA256: &str = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e";

/// How the server is built: without what needs a network, and quickly, since a
/// few requests to a tiny model are all it is for.
const OPTIONS: [&str; 13] = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
    "-DCMAKE_C_FLAGS_RELEASE=-O1",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_OPENMP=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_CCACHE=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
];

/// Arguments of `cargo xtask models`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Drafts of plans a model made of chance is to write, each way.
    #[arg(long, default_value_t = 8)]
    drafts: u32,
    /// Leave the server out: only models inside the program.
    #[arg(long)]
    without_server: bool,
    /// Build the server and stop.
    #[arg(long, conflicts_with = "without_server")]
    only_build: bool,
    /// Only check the Rust code of the feature, without compiling llama.cpp.
    #[arg(long, conflicts_with_all = ["without_server", "only_build", "filter"])]
    check: bool,
    /// Only tests whose name contains this.
    filter: Option<String>,
}

/// Builds what is missing and runs the tests.
pub fn run(args: &Args) -> Result<Passed> {
    if args.check {
        return cmd::status(&mut linted()?);
    }
    let mut test = cmd::cargo();
    test.args([
        "test",
        "-p",
        "hermitcrab",
        "--features",
        "llama",
        "--test",
        "models",
    ]);
    test.env("HERMITCRAB_DRAFTS", args.drafts.to_string());
    if !args.without_server {
        let server = server()?;
        println!("llama-server: {}", server.display());
        test.env("HERMITCRAB_LLAMA_SERVER", server);
    }
    if args.only_build {
        return Ok(Passed::Yes);
    }
    println!("the first build of the feature compiles llama.cpp and takes about ten minutes");
    test.arg("--").args(&args.filter).arg("--nocapture");
    cmd::status(&mut test)
}

/// The lints over the code of the feature.
///
/// # Errors
/// As for [`unbuilt`].
fn linted() -> Result<Command> {
    let unbuilt = unbuilt()?;
    let mut lint = cmd::cargo();
    lint.args(["clippy", "-p", "hermitcrab", "--features", "llama"])
        .args(["--all-targets", "--target-dir"])
        .arg(&unbuilt.dir)
        .args(["--", "-D", "warnings"]);
    unbuilt.without_cmake(&mut lint);
    Ok(lint)
}

/// Where code is read that is not built.
pub(crate) struct Unbuilt {
    /// What is made lies there.
    pub dir: PathBuf,
    no_cmake: PathBuf,
}

impl Unbuilt {
    /// Nothing is linked to read code, so that the bindings to llama.cpp are needed and
    /// llama.cpp is not: in cmake's place stands a script that leaves an empty archive where
    /// the build looks for one.
    pub(crate) fn without_cmake<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("CMAKE", &self.no_cmake)
    }
}

/// A directory apart: no real build is to find the empty archive.
///
/// # Errors
/// The script cannot be written.
pub(crate) fn unbuilt() -> Result<Unbuilt> {
    let dir = cmd::root().join("target/lint");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let no_cmake = dir.join("no-cmake");
    // As it was: a build script runs again when what it named is newer.
    if fs::read_to_string(&no_cmake).is_ok_and(|text| text == NO_CMAKE) {
        return Ok(Unbuilt { dir, no_cmake });
    }
    fs::write(&no_cmake, NO_CMAKE)
        .with_context(|| format!("cannot write {}", no_cmake.display()))?;
    fs::set_permissions(&no_cmake, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} a program", no_cmake.display()))?;
    Ok(Unbuilt { dir, no_cmake })
}

/// `OUT_DIR` is the one of the build script that asks for cmake.
const NO_CMAKE: &str = "\
#!/bin/sh
mkdir -p \"$OUT_DIR/lib\" && : >\"$OUT_DIR/lib/libllama.a\"
";

/// The server, built if it is not there yet.
fn server() -> Result<PathBuf> {
    let dir = ambient::cache_dir()
        .context("neither XDG_CACHE_HOME nor HOME says where a cache may be")?
        .join("hermitcrab/llama-server")
        .join(VERSION);
    let server = dir.join("build/bin/llama-server");
    let built = dir.join("built");
    if built.exists() && server.exists() {
        return Ok(server);
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let source = source(&dir)?;
    println!("configuring llama-server");
    let mut configure = Command::new("cmake");
    configure
        .arg("-S")
        .arg(source.join("vendor/llama.cpp"))
        .arg("-B")
        .arg(dir.join("build"))
        .args(OPTIONS);
    done(
        &mut configure,
        "it needs cmake and g++: `apt-get install cmake g++`",
    )?;
    println!("building llama-server, once: about ten minutes on two processors");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut build = Command::new("cmake");
    build.arg("--build").arg(dir.join("build")).args([
        "--target",
        "llama-server",
        "-j",
        &processors.to_string(),
    ]);
    done(&mut build, "see above")?;
    ensure!(server.exists(), "the build left no {}", server.display());
    fs::write(&built, VERSION).with_context(|| format!("cannot write {}", built.display()))?;
    Ok(server)
}

/// The sources, downloaded and unpacked if they are not there yet.
fn source(dir: &Path) -> Result<PathBuf> {
    let source = dir.join("source");
    if source.join("vendor/llama.cpp/CMakeLists.txt").exists() {
        return Ok(source);
    }
    println!("downloading the sources in {PACKAGE} {VERSION}, 77 MB");
    let wanted = dir.join("wanted.txt");
    fs::write(
        &wanted,
        format!("{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n"),
    )
    .with_context(|| format!("cannot write {}", wanted.display()))?;
    let mut download = Command::new("python3");
    download
        .args(["-m", "pip", "download", "--no-deps"])
        // The sources of this package alone: pip asks its build tools for its
        // name, and would build these from their sources, too.
        .args(["--no-binary", PACKAGE])
        .args(["--require-hashes", "--dest"])
        .arg(dir)
        .arg("-r")
        .arg(&wanted);
    done(&mut download, "it needs python3 with pip, and the network")?;
    let part = dir.join("source.part");
    if part.exists() {
        fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))?;
    }
    fs::create_dir(&part).with_context(|| format!("cannot make {}", part.display()))?;
    let archive = dir.join(format!("{}-{VERSION}.tar.gz", PACKAGE.replace('-', "_")));
    let mut unpack = Command::new("tar");
    unpack
        .arg("--strip-components=1")
        .arg("-xzf")
        .arg(&archive)
        .arg("-C")
        .arg(&part);
    done(
        &mut unpack,
        "the archive may be damaged; remove it and try again",
    )?;
    fs::rename(&part, &source).with_context(|| format!("cannot make {}", source.display()))?;
    Ok(source)
}

fn done(command: &mut Command, help: &str) -> Result<()> {
    let shown = cmd::show(command);
    ensure!(
        cmd::status(command).with_context(|| help.to_owned())? == Passed::Yes,
        "`{shown}` failed; {help}"
    );
    Ok(())
}
