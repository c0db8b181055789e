//! The programs that measure: finds their tools, builds them, and starts them.
//!
//! All have the same command line, `<peer> <workload> key=value…`. A program whose language is not
//! installed is left out, and the run reports that.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::roster::{Peer, Program};

const JAVA_OPTS: &str = "-Xms1g -Xmx6g";

/// How each program is started.
pub(super) struct Programs(BTreeMap<Program, Launch>);

struct Launch {
    /// The program and its first arguments.
    words: Vec<OsString>,
    /// The language and its version.
    version: (String, String),
}

impl Programs {
    /// Builds the programs that the peers need.
    pub(super) fn prepare(peers: &[Peer]) -> Result<Self> {
        let own = env::current_exe().context("this program has no path")?;
        let build = own.parent().context("it is in no directory")?.join("other-languages");
        fs::create_dir_all(&build)?;
        let mut programs = BTreeMap::new();
        for peer in peers {
            if programs.contains_key(&peer.program) {
                continue;
            }
            let launch = match peer.program {
                Program::Rust => Ok(rust(&own)),
                Program::Java17 => java("JAVA17", 17, &build),
                Program::Java25 => java("JAVA25", 25, &build),
                Program::Go => go(&build),
                Program::Cpp => cpp(&build),
            };
            let launch = launch.inspect_err(|error| skip(peer.program, peers, error));
            programs.insert(peer.program, launch.ok());
        }
        let present = programs.into_iter().filter_map(|(key, launch)| Some((key, launch?)));
        Ok(Self(present.collect()))
    }

    pub(super) fn has(&self, program: Program) -> bool {
        self.0.contains_key(&program)
    }

    /// The command without the arguments of the measurement.
    pub(super) fn command(&self, program: Program) -> Command {
        let words = &self.0[&program].words;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// The languages' versions.
    pub(super) fn versions(&self) -> Vec<(String, String)> {
        let launches = self.0.iter().filter(|(program, _)| **program != Program::Rust);
        launches.map(|(_, launch)| launch.version.clone()).collect()
    }
}

fn skip(program: Program, peers: &[Peer], why: &anyhow::Error) {
    let names = peers.iter().filter(|peer| peer.program == program).map(|peer| peer.name);
    eprintln!("skipped: {}: {why:#}", names.collect::<Vec<_>>().join(", "));
}

fn rust(own: &Path) -> Launch {
    let words = vec![own.into(), "measure".into()];
    Launch { words, version: Default::default() }
}

/// The directory of a program in another language.
fn source(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)
}

/// The files in it with this ending.
fn sources(directory: &str, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in source(directory).read_dir().with_context(|| format!("needs {directory}"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    Ok(files)
}

fn java(variable: &str, least: u32, build: &Path) -> Result<Launch> {
    let named = env::var_os(variable);
    let java = named.clone().unwrap_or_else(|| "java".into());
    let version = first_line(Command::new(&java).arg("--version"));
    let major = java_major(&version);
    ensure!(
        major.is_some_and(|major| major >= least),
        "needs Java {least} or newer, in {variable} or as `java` (found: {})",
        if version.is_empty() { "none" } else { &version },
    );
    let classes = java_classes(Path::new(&java), build)?;
    let mut words = vec![java];
    let options = env::var("JAVA_OPTS").unwrap_or_else(|_| JAVA_OPTS.to_owned());
    words.extend(options.split_whitespace().map(OsString::from));
    words.extend(["-cp".into(), classes.into(), "Bench".into()]);
    Ok(Launch { words, version: (format!("jdk{least}"), version) })
}

/// From a line like `openjdk 17.0.15 2025-04-15`.
fn java_major(version: &str) -> Option<u32> {
    let number = version.split_whitespace().nth(1)?;
    number.split(['.', '-', '+']).next()?.parse().ok()
}

/// Both JVMs run the same classes. A runtime without a compiler uses another's.
fn java_classes(java: &Path, build: &Path) -> Result<PathBuf> {
    let (sources, classes) = (sources("java", "java")?, build.join("java"));
    if is_older(&classes.join("Bench.class"), &sources) {
        let beside = java.with_file_name("javac");
        let compiler = if java.is_absolute() && beside.exists() { beside } else { "javac".into() };
        let mut command = Command::new(compiler);
        command.args(["--release", "17", "-d"]).arg(&classes).args(sources);
        build_with(command, "javac (a JDK, not only a JRE)")?;
    }
    Ok(classes)
}

fn go(build: &Path) -> Result<Launch> {
    let program = build.join("go-peer");
    let mut command = Command::new("go");
    command.current_dir(source("go")).args(["build", "-o"]).args([&program, Path::new(".")]);
    build_with(command, "go")?;
    let version = first_line(Command::new("go").arg("version"));
    Ok(Launch { words: vec![program.into()], version: ("go".to_owned(), version) })
}

fn cpp(build: &Path) -> Result<Launch> {
    let program = build.join("asio-peer");
    let boost = boost_version().context("needs g++ and boost/asio.hpp")?;
    if is_older(&program, &[sources("cpp", "cpp")?, sources("cpp", "hpp")?].concat()) {
        let mut command = Command::new("g++");
        command.args(["-O2", "-std=c++17", "-pthread", "-o"]).arg(&program);
        command.args(sources("cpp", "cpp")?);
        build_with(command, "g++")?;
    }
    let version = format!("Boost {boost}, {}", first_line(Command::new("g++").arg("--version")));
    Ok(Launch { words: vec![program.into()], version: ("asio".to_owned(), version) })
}

/// Asks the preprocessor.
fn boost_version() -> Option<String> {
    let includes = ["-include", "boost/version.hpp", "-include", "boost/asio/version.hpp"];
    let macros = ["-E", "-dM", "-x", "c++", "/dev/null"];
    let output = Command::new("g++").args(includes).args(macros).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.lines().find_map(|line| line.strip_prefix("#define BOOST_LIB_VERSION "))?;
    Some(version.trim_matches('"').replace('_', "."))
}

/// Returns `true` if it has to be built again.
fn is_older(made: &Path, sources: &[PathBuf]) -> bool {
    let time = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    sources.iter().any(|source| time(made) < time(source))
}

fn build_with(mut command: Command, needs: &str) -> Result<()> {
    let output = command.output().with_context(|| format!("needs {needs}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot be built: {}", errors.trim());
    Ok(())
}

/// The version that a tool prints; empty if the tool does not exist.
pub(super) fn first_line(command: &mut Command) -> String {
    let Ok(output) = command.output() else { return String::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::java_major;

    #[test]
    fn java_versions_are_read() {
        assert_eq!(java_major("openjdk 17.0.15 2025-04-15"), Some(17));
        assert_eq!(java_major("java 25 2025-09-16 LTS"), Some(25));
        assert_eq!(java_major("openjdk 26-ea 2026-03-17"), Some(26));
        assert_eq!(java_major(""), None);
    }
}
