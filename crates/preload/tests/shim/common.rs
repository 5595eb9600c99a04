//! Runs the programs of `examples` under the shim.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use stanchion_competitive::waits::log::{self, Log, Logged};
use stanchion_competitive::waits::shared::{Gathered, SIZE, Shared, header};
use stanchion_competitive::waits::{Distribution, Loss};

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

/// A shared table, and a log of single waits beside it.
pub(crate) struct Table(pub(crate) PathBuf);

/// The number of entries of a log.
const ENTRIES: usize = 1 << 12;

impl Table {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("stanchion-shim-{name}-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&header(5_000)).unwrap();
        file.set_len(SIZE as u64).unwrap();
        let table = Self(path);
        let mut file = File::create_new(table.log()).unwrap();
        file.write_all(&log::header(ENTRIES)).unwrap();
        file.set_len(log::size(ENTRIES) as u64).unwrap();
        table.with_log(|log| log.grow(ENTRIES));
        table
    }

    /// Returns the path of the log.
    fn log(&self) -> PathBuf {
        self.0.with_extension("log")
    }

    /// Calls `body` with the log.
    fn with_log<R>(&self, body: impl FnOnce(Log<'_>) -> R) -> R {
        let file = File::options().read(true).write(true).open(self.log()).unwrap();
        let (length, access) = (log::size(ENTRIES), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: new memory anywhere, over the whole of an open file.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: mapped above. The temporary folder is not full.
        let result = body(unsafe { Log::at(start.cast(), length) }.unwrap());
        // SAFETY: mapped above.
        unsafe { libc::munmap(start, length) };
        result
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
        let _ = fs::remove_file(self.log());
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
    command: Command,
    policy: Option<&str>,
) -> (Output, Gathered) {
    let (output, gathered, _) = run_logged(name, command, policy);
    (output, gathered)
}

/// Runs a command under the shim, and returns its single waits too.
fn run_logged(
    name: &str,
    mut command: Command,
    policy: Option<&str>,
) -> (Output, Gathered, Logged) {
    let table = Table::new(&format!("{name}-{}", policy.unwrap_or("record")));
    command.env("LD_PRELOAD", shim()).env("STANCHION_RECORD", &table.0);
    command.env("STANCHION_EVENTS", table.log()).env_remove("STANCHION_LOCK");
    if let Some(policy) = policy {
        command.env("STANCHION_LOCK", policy);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(600) {
            child.kill().unwrap();
            panic!("{name} with {policy:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let logged = table.with_log(|log| log.gather());
    (child.wait_with_output().unwrap(), table.gather(), logged)
}

/// Checks that the log has the waits that the table counted.
fn check(logged: &Logged, gathered: &Gathered, policy: Option<&str>) {
    let counted: u64 = gathered.locks.values().map(Distribution::count).sum();
    let counted = counted + gathered.nameless;
    // A thread that was killed may have counted a wait, and not written it.
    let nearly = |number: u64, all: u64| number <= all && all - number <= 16;
    // A thread that may not ask for its number writes no wait.
    let lost = gathered.losses.contains(&Loss::Numbers) && logged.seen <= counted;
    assert!(lost || nearly(logged.seen, counted), "{} of {counted} with {policy:?}", logged.seen);
    assert_eq!(logged.late, 0);
    if logged.seen <= ENTRIES as u64 {
        assert!(nearly(logged.waits.len() as u64, logged.seen), "{logged:?}");
    }
    for wait in &logged.waits {
        assert!(wait.process > 0 && wait.thread > 0 && wait.start_ns > 0, "{wait:?}");
        assert!(logged.names.contains_key(&(wait.process, wait.thread)), "{wait:?}");
        if let Some(times) = wait.meanwhile {
            let sum = times.ran_ns + times.preempted_ns + times.blocked_ns;
            assert!(sum == wait.length_ns && wait.waker != 0, "{wait:?}");
        }
    }
}

pub(crate) fn ok(what: &str, policy: Option<&str>) -> Gathered {
    ok_program("pthreads", what, policy)
}

pub(crate) fn ok_program(program: &str, what: &str, policy: Option<&str>) -> Gathered {
    let mut command = Command::new(built().join("examples").join(program));
    command.arg(what);
    let (output, gathered, logged) = run_logged(&format!("{program}-{what}"), command, policy);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{what} with {policy:?}: {}: {said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{what} with {policy:?}");
    assert_eq!(said, "", "{what} with {policy:?}");
    check(&logged, &gathered, policy);
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
