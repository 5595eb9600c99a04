//! `stanchion record` as a user runs it, before the program of `crates/preload/examples`.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::common::{Place, text};
use stanchion_competitive::waits::Recording;

/// Where cargo put the command: the shim lies beside it.
pub(crate) fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Path::new(env!("CARGO_BIN_EXE_stanchion")).parent().expect("a folder");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--lib", "--examples", "--manifest-path"]);
        cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../preload/Cargo.toml"));
        cargo.arg("--target-dir").arg(built.parent().expect("PROFILE lies in a folder"));
        if built.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo runs").success());
        built.to_owned()
    })
}

fn pthreads() -> String {
    built().join("examples/pthreads").to_string_lossy().into_owned()
}

impl Place {
    /// Runs `stanchion record` in it.
    fn record(&self, arguments: &[&str]) -> Output {
        built();
        self.stanchion(&[&["record"], arguments].concat())
    }

    /// Runs `stanchion` in it.
    fn stanchion(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
        command.args(arguments).current_dir(&self.0);
        command.env_remove("LD_PRELOAD").output().expect("it can be started")
    }

    /// Copies a program, and returns the path of the copy. Another process writes it: if this
    /// process did, a child forked meanwhile could hold the file open for writing. The kernel runs
    /// no such file.
    pub(crate) fn copy_of(&self, program: &str) -> String {
        let copy = self.path("copy");
        let done = Command::new("cp").args([program, &copy]).status().expect("cp runs");
        assert!(done.success());
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        copy
    }

    /// Writes a file that can be run once no process has it open for writing.
    fn executable(&self, name: &str, contents: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

fn read(path: &str) -> Recording {
    Recording::from_json(&fs::read(path).expect("it was written")).expect("it is a recording")
}

#[test]
fn waits_are_written_under_the_names_of_their_locks() {
    let place = Place::new("names");
    let done = place.record(&["--", &pthreads(), "contend"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert_eq!(text(&done.stdout), "ok\n", "standard output is the program's");
    let recording = read(&place.path("waits.json"));
    assert_eq!(recording.program, "pthreads");
    assert_eq!(recording.mutexes.as_deref(), Some("pthread"));
    assert!(recording.elapsed_ns > 1_000_000 && recording.overflow == 0);
    let names: Vec<_> = recording.locks.iter().map(|lock| lock.0.as_str()).collect();
    assert!(names.contains(&"pthreads: STATIC_LOCK"), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("pthreads: in pthreads::")), "{names:?}");
    assert!(recording.lock("pthreads: STATIC_LOCK").unwrap().blocked() > 20);
    assert!(said.contains("pthreads: STATIC_LOCK") && said.contains("waits.json"), "{said}");
    let left = fs::read_dir(&place.0).unwrap().count();
    assert_eq!(left, 1, "the recording and nothing else");
}

#[test]
fn waits_of_the_locks_of_rust_have_the_names_of_functions() {
    let place = Place::new("rust");
    let program = built().join("examples/waits").to_string_lossy().into_owned();
    let done = place.record(&["--", &program, "all"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    let recording = read(&place.path("waits.json"));
    for name in [
        "waits: std Mutex in waits::take_mutex",
        "waits: std RwLock in waits::write_table",
        "waits: parking_lot Mutex in waits::take_parking_lot",
    ] {
        // Behind the function stands its line.
        let named = recording.locks.iter().find(|(lock, _)| lock.starts_with(name));
        assert!(named.is_some_and(|(_, waits)| waits.blocked() > 0), "{name}: {said}");
        assert!(named.is_some_and(|(lock, _)| lock.contains(" (waits.rs:")), "{name}: {said}");
    }
    for name in [
        "std Condvar in waits::wait_for_flag",
        "std channel in waits::receive",
        "thread::park in waits::rest",
    ] {
        let line = said.lines().find(|line| line.contains(name));
        let is_other = |line: &str| line.contains("  condition ") || line.contains("  park ");
        assert!(line.is_some_and(is_other), "{name}: {said}");
        assert!(recording.locks.iter().all(|(lock, _)| !lock.contains(name)), "{name}");
    }
}

#[test]
fn the_cost_of_recording_is_measured_in_pairs_and_nothing_is_written() {
    let place = Place::new("cost");
    let program = built().join("examples/waits").to_string_lossy().into_owned();
    let done = place.record(&["--cost=2", "--", &program, "rest"]);
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{said}{}", text(&done.stderr));
    assert!(said.starts_with("recording ") && said.contains(" (95 % interval: "), "{said}");
    assert!(said.contains(" (2 pairs of runs, of "), "{said}");
    assert!(!said.contains("\nok"), "the program's output goes nowhere: {said}");
    let failed = place.record(&["--cost=2", "--", "sh", "-c", "exit 3"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).contains("`sh` ended with exit status: 3"));
    for wrong in ["--cost=1", "--cost=0", "--cost=many"] {
        assert_eq!(place.record(&[wrong, "--", &program, "rest"]).status.code(), Some(2));
    }
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
}

#[test]
fn a_program_that_waits_very_often_keeps_its_counts_and_hears_of_the_sample() {
    let place = Place::new("often");
    let program = built().join("examples/waits").to_string_lossy().into_owned();
    let done = place.record(&["--", &program, "often", "20000"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    let line = said.lines().find(|line| line.contains("thread::park in waits::often"));
    let count = line.and_then(|line| line.split_whitespace().nth(1));
    let count: u64 = count.unwrap().replace(',', "").parse().unwrap();
    // A thread that is woken before it sleeps does not wait.
    assert!(count > 5_000, "{said}");
    assert!(said.contains("of the waits came too fast for a look at their calls"), "{said}");
}

#[test]
fn a_program_without_waits_for_locks_gets_the_other_waits() {
    let place = Place::new("rest");
    let program = built().join("examples/waits").to_string_lossy().into_owned();
    let done = place.record(&["--", &program, "rest"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("no thread of waits had to wait for a lock"), "{said}");
    assert!(said.contains("thread::park in waits::rest"), "{said}");
    assert!(read(&place.path("waits.json")).locks.is_empty());
}

#[test]
fn a_recording_has_a_page_by_paths_of_calls() {
    let place = Place::new("paths");
    let program = built().join("examples/waits").to_string_lossy().into_owned();
    assert!(place.record(&["--", &program, "all"]).status.success());
    let report = |arguments: &[&str]| place.stanchion(&[&["report"], arguments].concat());
    let done = report(&["waits.json", "--folded", "stacks.txt"]);
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{said}{}", text(&done.stderr));
    for part in ["std Mutex in waits::take_mutex", "\ncondition ", "\nsleep ", "\npark "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let page = fs::read_to_string(place.path("waits/report.html")).unwrap();
    assert!(page.contains("<h2>For locks, by path of calls</h2>") && page.contains("take_mutex"));
    let stacks = fs::read_to_string(place.path("stacks.txt")).unwrap();
    let mutex = stacks.lines().find(|line| line.contains("waits::take_mutex"));
    let (calls, micros) = mutex.and_then(|line| line.rsplit_once(' ')).unwrap();
    assert!(calls.ends_with(";std Mutex") && micros.parse::<u64>().unwrap() > 10_000, "{stacks}");
    assert!(stacks.lines().any(|line| line.starts_with("main;waits::main")), "{stacks}");

    let hidden = report(&["waits.json", "--anonymous", "--output", "hidden"]);
    assert!(hidden.status.success());
    let page = fs::read_to_string(place.path("hidden/report.html")).unwrap();
    assert!(page.contains("std Mutex in function ") && !page.contains("take_mutex"));
    assert!(!page.contains("waits.rs") && !text(&hidden.stdout).contains("take_mutex"));

    fs::write(place.path("cut.json"), &fs::read(place.path("waits.json")).unwrap()[..900]).unwrap();
    let cut = report(&["cut.json"]);
    assert_eq!(cut.status.code(), Some(2));
    assert!(text(&cut.stderr).contains("cannot report cut.json"), "{}", text(&cut.stderr));
}

#[test]
fn a_lock_of_ours_is_recorded_as_well() {
    let place = Place::new("lock");
    let output = place.path("spun.json");
    for policy in [
        "adaptive",
        "always-block",
        "always-spin",
        "fixed-spin",
        "fixed-spin-half",
        "last-three-samples",
        "optimal-online-approximation",
        "random-walk",
        "randomized",
    ] {
        let done = place.record(&["--lock", policy, "-o", &output, "--", &pthreads(), "contend"]);
        assert!(done.status.success(), "{policy}: {}", text(&done.stderr));
        assert!(!text(&done.stderr).contains("not replaced"), "{policy}: {}", text(&done.stderr));
        let recording = read(&output);
        assert!(recording.all().count() > 0, "{policy}");
        assert_eq!(recording.mutexes.as_deref(), Some(policy));
        if policy == "always-spin" {
            assert_eq!(recording.all().blocked(), 0);
        }
    }
    let refused = place.record(&["--lock", "lottery", "--", &pthreads(), "contend"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("random-walk"), "it names those there are");
}

#[test]
fn the_exit_code_is_the_program_s() {
    let place = Place::new("code");
    assert_eq!(place.record(&["--", &pthreads(), "exit"]).status.code(), Some(7));
    assert_eq!(place.record(&["--", "sh", "-c", "exit 42"]).status.code(), Some(42));
    let killed = place.record(&["--", &pthreads(), "killed"]);
    assert_eq!(killed.status.code(), Some(128 + 9));
    let said = text(&killed.stderr);
    assert!(said.contains("was ended by signal 9"), "{said}");
    assert!(read(&place.path("waits.json")).all().count() > 0, "its waits are there");
}

#[test]
fn processes_that_it_starts_count_too() {
    let place = Place::new("processes");
    let script = format!("{0} contend & {0} contend; wait", pthreads());
    let done = place.record(&["--", "sh", "-c", &script]);
    assert!(done.status.success());
    assert_eq!(text(&done.stdout), "ok\nok\n");
    assert!(text(&done.stderr).contains("of sh, in 2 processes"), "{}", text(&done.stderr));
    let recording = read(&place.path("waits.json"));
    assert_eq!(recording.program, "sh");
    assert!(recording.lock("pthreads: STATIC_LOCK").is_some(), "one lock for both");
}

#[test]
fn nothing_to_record_is_said_and_nothing_written() {
    let place = Place::new("nothing");
    let written = place.path("waits.json");
    for (what, says) in
        [("none", "took no lock of the C library"), ("alone", "never had to wait for one")]
    {
        let done = place.record(&["--", &pthreads(), what]);
        assert_eq!(done.status.code(), Some(0), "{what}");
        let said = text(&done.stderr);
        assert!(said.contains("nothing was recorded") && said.contains(says), "{said}");
        assert!(!Path::new(&written).exists(), "{what}");
    }
    fs::write(&written, "an older one").unwrap();
    place.record(&["--", &pthreads(), "none"]);
    assert_eq!(fs::read_to_string(&written).unwrap(), "an older one");
    // A wrapper that clears the environment takes the shim away.
    let done = place.record(&["--", "env", "-i", &pthreads(), "contend"]);
    assert!(text(&done.stderr).contains("took no lock of the C library"), "{}", text(&done.stderr));
}

#[test]
fn what_cannot_be_recorded_is_refused_before_it_runs() {
    let place = Place::new("refused");
    let me = fs::read(pthreads()).unwrap();
    // A program without an interpreter is what the kernel starts by itself: rename that entry.
    let mut fixed = me.clone();
    let table = u64::from_le_bytes(fixed[32..40].try_into().unwrap()) as usize;
    let entries = u16::from_le_bytes(fixed[56..58].try_into().unwrap()) as usize;
    for entry in (table..).step_by(56).take(entries) {
        // PT_INTERP becomes PT_NULL.
        if fixed[entry..entry + 4] == 3_u32.to_le_bytes() {
            fixed[entry] = 0;
        }
    }
    let fixed = place.executable("static", &fixed);
    let mut narrow = me.clone();
    narrow[4] = 1;
    let narrow = place.executable("narrow", &narrow);
    let script = place.executable("script", format!("#!{fixed}\n").as_bytes());
    let plain = place.path("plain");
    fs::write(&plain, "text").unwrap();

    for (program, code, says) in [
        (&*fixed, 2, "statically linked"),
        (&script, 2, "statically linked"),
        (&narrow, 2, "another kind of processor"),
        (&plain, 126, "not executable"),
        ("/", 126, "a directory"),
        ("no-such-program", 127, "no program `no-such-program` in PATH"),
        ("/no/such/program", 127, "no program `/no/such/program`"),
    ] {
        let refused = place.record(&["--", program]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{program}: {said}");
        assert!(said.contains(says), "{program}: {said}");
        assert!(refused.stdout.is_empty());
        assert!(!Path::new(&place.path("waits.json")).exists(), "{program}");
    }

    let refused = place.record(&["--shim", "/no/shim.so", "--", &pthreads(), "contend"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("/no/shim.so"));
    let refused = place.record(&["--shim", &plain, "--", &pthreads(), "contend"]);
    assert!(text(&refused.stderr).contains("not a shim"), "{}", text(&refused.stderr));
    let refused = place.record(&["-o", "/no/where.json", "--", &pthreads(), "contend"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--output"), "{}", text(&refused.stderr));
    assert_eq!(place.record(&[]).status.code(), Some(2));
}

#[test]
fn without_a_shim_it_says_how_to_get_one() {
    let place = Place::new("no-shim");
    // The command alone, in a folder of its own.
    fs::create_dir(place.path("bin")).unwrap();
    let alone = place.path("bin/stanchion");
    // By another process: a program cannot be started while it is open for writing, and each
    // process that another test starts keeps a file of ours open until it executes its program.
    let copied = Command::new("cp").args([env!("CARGO_BIN_EXE_stanchion"), &alone]).status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(&alone);
    command.args(["record", "--", "sh"]);
    // It would build the shim, and finds nothing to build it with.
    command.env("XDG_CACHE_HOME", place.path("cache")).env("CARGO", "/no/such/cargo");
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    for words in ["--shim", "`/no/such/cargo` cannot be run", "put it on PATH"] {
        assert!(said.contains(words), "no {words} in {said}");
    }
}

#[test]
fn a_signal_for_the_program_reaches_it() {
    let place = Place::new("signal");
    built();
    let mut child = Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .args([
            "record",
            "--",
            "sh",
            "-c",
            "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done",
        ])
        .current_dir(&place.0)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut ready,
    )
    .unwrap();
    assert_eq!(ready, "ready\n");
    let sent = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(9));
}
