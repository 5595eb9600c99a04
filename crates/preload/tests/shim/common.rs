//! Runs the programs of `examples` under the shim.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use stanchion_competitive::waits::shared::{Gathered, SIZE, Shared, header};

/// Returns the folder in which cargo puts what it builds in this profile.
pub(crate) fn built() -> PathBuf {
    let me = std::env::current_exe().expect("a running test has a file");
    me.parent().and_then(Path::parent).expect("tests lie in PROFILE/deps").to_owned()
}

/// Returns the path of the library. Before its tests, cargo does not build a library that no test
/// links to, so this function asks for it. The same holds for the program, which cargo leaves out
/// if one test is named.
pub(crate) fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--lib", "--examples", "--manifest-path"]);
        cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        cargo.arg("--target-dir").arg(built().parent().expect("PROFILE lies in a folder"));
        if built().ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo runs").success());
        built().join("libstanchion_preload.so")
    })
}

pub(crate) struct Table(pub(crate) PathBuf);

impl Table {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("stanchion-shim-{name}-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&header(5_000)).unwrap();
        file.set_len(SIZE as u64).unwrap();
        Self(path)
    }

    pub(crate) fn words(&self) -> Vec<u64> {
        let bytes = fs::read(&self.0).unwrap();
        let words = bytes.chunks_exact(8);
        words.map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    pub(crate) fn gather(&self) -> Gathered {
        let mut words = self.words();
        // SAFETY: a copy that is this test's.
        unsafe { Shared::at(words.as_mut_ptr().cast::<u8>(), words.len() * 8) }.unwrap().gather()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs `pthreads WHAT` under the shim.
pub(crate) fn run(what: &str, policy: Option<&str>) -> (Output, Gathered) {
    run_program("pthreads", what, policy)
}

/// Runs `PROGRAM WHAT` under the shim.
pub(crate) fn run_program(program: &str, what: &str, policy: Option<&str>) -> (Output, Gathered) {
    let mut command = Command::new(built().join("examples").join(program));
    command.arg(what);
    run_command(&format!("{program}-{what}"), command, policy)
}

/// Runs a command under the shim.
pub(crate) fn run_command(
    name: &str,
    mut command: Command,
    policy: Option<&str>,
) -> (Output, Gathered) {
    let table = Table::new(&format!("{name}-{}", policy.unwrap_or("record")));
    command.env("LD_PRELOAD", shim()).env("STANCHION_RECORD", &table.0);
    command.env_remove("STANCHION_LOCK");
    if let Some(policy) = policy {
        command.env("STANCHION_LOCK", policy);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(100) {
            child.kill().unwrap();
            panic!("{name} with {policy:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    (child.wait_with_output().unwrap(), table.gather())
}

pub(crate) fn ok(what: &str, policy: Option<&str>) -> Gathered {
    ok_program("pthreads", what, policy)
}

pub(crate) fn ok_program(program: &str, what: &str, policy: Option<&str>) -> Gathered {
    let (output, gathered) = run_program(program, what, policy);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{what} with {policy:?}: {}: {said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{what} with {policy:?}");
    assert_eq!(said, "", "{what} with {policy:?}");
    gathered
}

/// Runs `pthreads WHAT` in both modes: recorded only, and replaced by the two policies that differ
/// most.
pub(crate) fn ok_in_all_modes(what: &str) {
    for policy in [None, Some("always-block"), Some("fixed-spin")] {
        ok(what, policy);
    }
}

pub(crate) fn of_kind(gathered: &Gathered, kind: char) -> Vec<(&str, u64)> {
    let locks = gathered.locks.iter().filter(|lock| lock.0.starts_with(kind));
    locks.map(|(name, waits)| (name.as_str(), waits.count())).collect()
}
