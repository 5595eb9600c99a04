//! `stanchion patch` as a user runs it, on a program over parking_lot.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Place, text};

/// A program that takes two locks in both orders, one after the other. With a number it has a
/// thread wait for a lock and for a condition, as often as the number says. With `stuck` it takes
/// the two locks in both orders at the same time, and has other threads hold and want locks. With
/// `forked` it forks, prints the number of the child, and closes its descriptors.
const PROGRAM: &str = r#"use parking_lot::{Condvar, Mutex};
static ACCOUNTS: Mutex<u32> = Mutex::new(0);
static LOG: Mutex<u32> = Mutex::new(0);
fn deposit() {
    let accounts = ACCOUNTS.lock();
    *LOG.lock() += *accounts;
}
fn audit() {
    let log = LOG.lock();
    *ACCOUNTS.lock() += *log;
}
fn main() {
    if let Some(waits) = std::env::args().nth(1) {
        match waits.as_str() {
            "stuck" => return stuck(),
            "forked" => return forked(),
            _ => {}
        }
        return (0..waits.parse().unwrap()).for_each(|_: u32| wait());
    }
    std::thread::spawn(deposit).join().unwrap();
    std::thread::spawn(audit).join().unwrap();
}

static OPEN: Mutex<bool> = Mutex::new(false);
static CHANGED: Condvar = Condvar::new();
#[inline(never)]
fn wait_for_accounts() {
    *ACCOUNTS.lock() += 1;
}
#[inline(never)]
fn wait_until_open() {
    let mut open = OPEN.lock();
    while !*open {
        CHANGED.wait(&mut open);
    }
    *open = false;
}
fn wait() {
    let held = ACCOUNTS.lock();
    with_sleeper(wait_for_accounts, || drop(held));
    with_sleeper(wait_until_open, || {
        *OPEN.lock() = true;
        CHANGED.notify_one();
    });
}
static COMPUTED: Mutex<u32> = Mutex::new(0);
static KEPT: Mutex<u32> = Mutex::new(0);
fn stuck() {
    // The first acquisition switches the recorder on. What others take meanwhile is not recorded.
    let _kept = KEPT.lock();
    let spawn = |name: &str, act: fn()| {
        std::thread::Builder::new().name(name.to_owned()).spawn(act).unwrap();
    };
    static MET: std::sync::Barrier = std::sync::Barrier::new(2);
    static HELD: std::sync::Barrier = std::sync::Barrier::new(2);
    spawn("first", || {
        let _accounts = ACCOUNTS.lock();
        MET.wait();
        let _log = LOG.lock();
    });
    spawn("second", || {
        let _log = LOG.lock();
        MET.wait();
        let _accounts = ACCOUNTS.lock();
    });
    spawn("computes", || {
        let mut computed = COMPUTED.lock();
        HELD.wait();
        loop {
            *computed = std::hint::black_box(computed.wrapping_add(1));
        }
    });
    HELD.wait();
    spawn("wants", || *COMPUTED.lock() += 1);
    spawn("tries", || {
        COMPUTED.try_lock_for(std::time::Duration::from_secs(600));
    });
    spawn("waits", wait_until_open);
    println!("waiting");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    std::process::exit(0);
}
fn forked() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn close(descriptor: i32) -> i32;
    }
    let _kept = KEPT.lock();
    let child = unsafe { fork() };
    if child > 0 {
        (3..64).for_each(|descriptor| drop(unsafe { close(descriptor) }));
        println!("{child}");
    }
    std::io::stdin().read_line(&mut String::new()).unwrap();
    std::process::exit(0);
}
fn with_sleeper(sleep: fn(), wake: impl FnOnce()) {
    let folder = std::sync::OnceLock::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            folder.set(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            sleep();
        });
        let is_asleep = |folder: &std::path::PathBuf| {
            let stat = std::path::Path::new("/proc").join(folder).join("stat");
            std::fs::read_to_string(stat).unwrap().contains(") S ")
        };
        while !folder.get().is_some_and(is_asleep) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        wake();
    });
}
"#;

const MANIFEST: &str = "[package]
name = \"transfer\"
version = \"0.1.0\"
edition = \"2024\"

[dependencies]
parking_lot = \"0.12\"

";

/// Runs `stanchion patch` in the folder.
fn patch(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.arg("patch").args(arguments).current_dir(folder);
    command.output().expect("it can be started")
}

/// Runs cargo in the folder: without the network, or with it if something has to be fetched.
fn cargo(folder: &Path, arguments: &[&str]) {
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).args(more).current_dir(folder);
        // It is built once.
        command.env("CARGO_TARGET_DIR", folder.join("target")).env("CARGO_INCREMENTAL", "0");
        command.env("STANCHION_ORDERS", "orders.txt").output().expect("cargo runs")
    };
    let mut done = run(&["--offline"]);
    if !done.status.success() {
        done = run(&[]);
    }
    assert!(done.status.success(), "cargo {arguments:?}: {}", text(&done.stderr));
}

fn lock_file(lock_api: &str) -> String {
    let locked: Vec<_> = lock_api.split_whitespace().map(|version| ("lock_api", version)).collect();
    lock_file_of(&locked)
}

fn lock_file_of(locked: &[(&str, &str)]) -> String {
    let source = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
    let package = |name: &str, version: &str, source: &str| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}\n")
    };
    let locked = locked.iter().map(|(name, version)| package(name, version, source));
    format!("version = 4\n\n{}{}", package("app", "0.1.0", ""), locked.collect::<String>())
}

#[test]
fn a_program_built_by_the_printed_lines_names_two_of_its_own() {
    let place = Place::new("patched");
    let folder = &place.0;
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/main.rs"), PROGRAM).unwrap();
    fs::write(folder.join("Cargo.toml"), MANIFEST).unwrap();
    // The versions that the workspace was fetched with. Cargo drops the other packages.
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    fs::copy(lock, folder.join("Cargo.lock")).unwrap();
    cargo(folder, &["metadata", "--quiet", "--format-version", "1"]);
    let before = patch(folder, &["--check"]);
    let said = text(&before.stdout);
    assert_eq!(before.status.code(), Some(1), "{said}");
    assert!(
        said.contains("not patched") && said.contains("cargo update -p lock_api@0.4"),
        "{said}"
    );
    assert!(said.contains("cargo update -p parking_lot_core@0.9"), "{said}");

    let done = patch(folder, &["recorded locks"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    assert!(!said.contains("lock_api-0.5"), "only 0.4 is in the Cargo.lock:\n{said}");
    let (_, lines) = said.split_once("[patch.crates-io]\n").expect("the section is printed");
    let (section, commands) = lines.split_once("\n\n").expect("an empty line ends the section");
    fs::write(folder.join("Cargo.toml"), format!("{MANIFEST}[patch.crates-io]\n{section}\n"))
        .unwrap();
    let commands: Vec<_> =
        commands.lines().filter_map(|line| line.strip_prefix("cargo ")).collect();
    assert_eq!(commands.len(), 1, "{said}");
    cargo(folder, &commands[0].split_whitespace().collect::<Vec<_>>());
    assert!(said.contains("\nSTANCHION_ORDERS=orders.txt cargo run\n"), "{said}");
    cargo(folder, &["run", "--quiet"]);

    let orders = fs::read_to_string(folder.join("orders.txt")).expect("the patch was used");
    assert!(orders.contains("possible deadlock of 2 threads"), "{orders}");
    #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
    {
        each_wait_counts_once(folder);
        a_stuck_program_is_explained(folder);
        a_table_that_cannot_be_read_has_a_reason(folder);
    }
    for line in
        ["in transfer::deposit at ./src/main.rs:6:", "in transfer::audit at ./src/main.rs:10:"]
    {
        assert!(orders.contains(line), "{line} is missing:\n{orders}");
    }
    let after = patch(folder, &["--check"]);
    assert_eq!(after.status.code(), Some(0), "{}", text(&after.stdout));
    let again = text(&patch(folder, &["recorded locks"]).stdout);
    assert!(again.contains("patched already") && !again.contains("cargo update"), "{again}");
}

/// Returns the place of the first line of the program with this part.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn place(part: &str) -> String {
    let line = PROGRAM.lines().position(|line| line.contains(part)).expect("a line has it");
    format!("src/main.rs:{}:", line + 1)
}

/// Runs the patched program under `stanchion record`. The shim counts its waits, and so does the
/// recorder of the patches, in a file of its own: neither counts what the other has counted.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn each_wait_counts_once(folder: &Path) {
    let built = folder.join("target/debug/transfer");
    let mut record = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    crate::record::built();
    record.arg("record").arg("--").arg(built).arg("23").current_dir(folder);
    record.env_remove("LD_PRELOAD").env("STANCHION_ORDERS", "waits.txt");
    let done = record.output().expect("it can be started");
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    let recording = fs::read(folder.join("waits.json")).expect("it was written");
    let recording = stanchion_competitive::waits::Recording::from_json(&recording).unwrap();
    let of_lock = |name: &str| name.contains("parking_lot Mutex in transfer::wait_for_accounts");
    let locks = recording.locks.iter().filter(|(name, _)| of_lock(name));
    assert_eq!(locks.map(|(_, waits)| waits.blocked()).sum::<u64>(), 23, "{said}");
    let of_condition = |line: &&str| line.contains("Condvar in transfer::wait_until_open");
    let condition = said.lines().find(of_condition).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(condition.split_whitespace().nth(1), Some("23"), "{said}");
    let orders = fs::read_to_string(folder.join("waits.txt")).expect("the patch was used");
    for (start, created) in
        [("  for lock ", "static ACCOUNTS"), ("  for a condition (", "static OPEN")]
    {
        let place = place(created);
        let its = |line: &&str| {
            line.starts_with(start) && line.contains(&place) && line.contains("): 23, ")
        };
        assert_eq!(orders.lines().filter(its).count(), 1, "{place} is missing:\n{orders}");
    }
}

/// Runs `stanchion stalls` until `missing` finds nothing missing in its output.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn until_stalls(id: &str, missing: impl Fn(&str) -> Option<String>) {
    let began = std::time::Instant::now();
    loop {
        let mut stalls = Command::new(env!("CARGO_BIN_EXE_stanchion"));
        let done = stalls.args(["stalls", id]).output().expect("it runs");
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let said = text(&done.stdout);
        let Some(missing) = missing(&said) else { return };
        assert!(began.elapsed().as_secs() < 60, "{missing}:\n{said}");
    }
}

/// Asks for the locks of a child of a fork, and of a program without descriptors.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn a_table_that_cannot_be_read_has_a_reason(folder: &Path) {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let mut command = Command::new(folder.join("target/debug/transfer"));
    command.arg("forked").current_dir(folder).env("STANCHION_ORDERS", "forked.txt");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut parent = command.spawn().expect("it can be started");
    let mut child = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut child).unwrap();
    let parent_id = parent.id().to_string();
    for (id, reason) in [
        (child.trim(), format!("it is a fork of the process {parent_id}")),
        (&parent_id, "the program has closed its descriptor".to_owned()),
    ] {
        // The process is about to read, and may not do so yet.
        until_stalls(id, |said| {
            let parts = [&*reason, "not recorded: in read"];
            parts.iter().find(|part| !said.contains(**part)).map(|part| (*part).to_owned())
        });
    }
    drop(parent.stdin.take());
    assert!(parent.wait().unwrap().success());
}

/// Has `stanchion stalls` say which thread holds what, without the shim and with it.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn a_stuck_program_is_explained(folder: &Path) {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let built = folder.join("target/debug/transfer");
    for is_recorded in [false, true] {
        let mut command = Command::new(if is_recorded {
            Path::new(env!("CARGO_BIN_EXE_stanchion"))
        } else {
            &built
        });
        if is_recorded {
            command.arg("record").arg("--").arg(&built);
        }
        command.arg("stuck").current_dir(folder).env("STANCHION_ORDERS", "stuck.txt");
        command.env_remove("LD_PRELOAD").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("it can be started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "waiting\n");
        let (accounts, log) = (place("static ACCOUNTS"), place("static LOG"));
        let (accounts_first, log_second) = (place("let _accounts"), place("let _log"));
        // The shim knows the function.
        let function = if is_recorded { "Mutex in transfer::stuck" } else { "" };
        let waits = if is_recorded { "that the shim sees or " } else { "" };
        let counted = format!("7 threads, of which 5 in waits {waits}that are recorded");
        let lines: &[&[&str]] = &[
            &[&counted],
            &[" first ", "  lock  lock ", "(created at ", &log, function],
            &[" second ", "  lock  lock ", "(created at ", &accounts],
            &["held by ", "(first): exclusive, taken at", &accounts_first, "; blocked in futex"],
            &["held by ", "(second): exclusive, taken at ", "; blocked in futex"],
            &["wanted by ", "(first) for ", "exclusive, at ", &log_second],
            &["these threads wait for each other: ", "(first) for lock ", "(second) for lock "],
            &["held by ", "(computes): exclusive, taken at "],
            &["wanted by ", "(wants) for ", "exclusive, at "],
            &["wanted by ", "(tries) for ", "exclusive, at "],
            &["held by ", "(transfer): exclusive, taken at ", "; blocked in read"],
            &[" waits ", "  condition  with lock ", &place("static OPEN")],
        ];
        until_stalls(&child.id().to_string(), |said| {
            for words in lines {
                let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
                if said.lines().filter(has_all).count() != 1 {
                    return Some(format!("{words:?}"));
                }
            }
            let computes = said.lines().find(|line| line.contains("(computes): "));
            let computes = computes.unwrap_or_default();
            let is_ready = computes.contains("; runs") || computes.contains("; waits for a");
            let holders = said.matches("    held by ").count();
            (!is_ready || holders != 4).then(|| format!("4 holders, not {holders}, or {computes}"))
        });
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn lines_are_for_the_versions_of_the_nearest_lock_file() {
    let place = Place::new("patch-lines");
    let member = place.0.join("member");
    fs::create_dir(&member).unwrap();
    let said = |lock_api: &str| {
        fs::write(place.path("Cargo.lock"), lock_file(lock_api)).unwrap();
        let done = patch(&member, &["../out"]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    let both = said("0.4.12 0.5.0");
    let out = place.0.join("out").canonicalize().expect("it was written");
    for line in [
        format!("lock_api = {{ path = \"{}/lock_api-0.4\" }}", out.display()),
        format!(
            "lock_api_05 = {{ package = \"lock_api\", path = \"{}/lock_api-0.5\" }}",
            out.display()
        ),
        "cargo update -p lock_api@0.4.12 -p lock_api@0.5.0".to_owned(),
    ] {
        assert!(both.lines().any(|printed| printed == line), "{line} is missing:\n{both}");
    }
    let new = said("0.5.0");
    assert!(new.contains("\nlock_api = { path") && !new.contains("0.4"), "{new}");
    let old = said("0.3.4");
    assert!(old.contains("0.3.4 has no patch") && !old.contains("[patch"), "{old}");
    let none = said("");
    assert!(none.contains("no lock_api or parking_lot_core") && !none.contains("[patch"), "{none}");
    let checked = patch(&member, &["--check"]);
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked.stdout));

    fs::write(
        place.path("Cargo.lock"),
        lock_file_of(&[
            ("lock_api", "0.4.14"),
            ("parking_lot_core", "0.9.9"),
            ("parking_lot_core", "0.8.6"),
        ]),
    )
    .unwrap();
    let core = text(&patch(&member, &["../out"]).stdout);
    let line =
        format!("parking_lot_core = {{ path = \"{}/parking_lot_core-0.9\" }}", out.display());
    assert!(core.lines().any(|printed| printed == line), "{core}");
    assert!(
        core.contains("# parking_lot_core 0.8.6 has no patch: there are patches of 0.9 and 0.10")
    );
    assert!(core.contains("cargo update -p lock_api@0.4.14 -p parking_lot_core@0.9.9\n"), "{core}");

    fs::remove_file(place.path("Cargo.lock")).unwrap();
    let done = text(&patch(&member, &["../out"]).stdout);
    assert!(done.contains("There is no Cargo.lock in"), "{done}");
    assert!(done.contains("lock_api-0.4") && done.contains("lock_api-0.5"), "{done}");
    assert!(done.contains("\nparking_lot_core_010 = { package = \"parking_lot_core\""), "{done}");
}

#[test]
fn a_patch_that_cargo_does_not_use_is_noticed() {
    let place = Place::new("patch-unused");
    let unused = "[[patch.unused]]\nname = \"lock_api\"\nversion = \"0.4.14\"\n";
    fs::write(place.path("Cargo.lock"), lock_file("0.4.15") + unused).unwrap();
    fs::write(place.path("Cargo.toml"), MANIFEST).unwrap();
    let elsewhere = Place::new("patch-elsewhere");
    let manifest = place.path("Cargo.toml");
    let checked = patch(&elsewhere.0, &["--check", "--manifest-path", &manifest]);
    let said = text(&checked.stdout);
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(
        said.contains("does not use the patch lock_api 0.4.14") && said.contains("cargo tree"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_done_is_refused_with_its_path() {
    let place = Place::new("patch-refused");
    fs::write(place.path("mine.txt"), "mine").unwrap();
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let done = patch(&place.0, arguments);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {part} is missing: {said}");
        assert!(done.stdout.is_empty(), "{arguments:?}");
    };
    refused(&["."], 2, "name a new folder, or empty it");
    refused(&["mine.txt"], 2, "mine.txt is a file or lies in one");
    refused(&["mine.txt/below"], 2, "mine.txt/below");
    refused(&["--check"], 2, "there is no Cargo.lock in");
    refused(&[], 2, "<DIR>");
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
        command.arg("patch").arg(std::ffi::OsStr::from_bytes(b"out\xff")).current_dir(&place.0);
        let done = command.output().expect("it can be started");
        assert_eq!(done.status.code(), Some(2));
        assert!(text(&done.stderr).contains("not UTF-8"), "{}", text(&done.stderr));
    }
    refused(&["out", "--check"], 2, "--check");
    refused(&["out", "--manifest-path", "none/Cargo.toml"], 2, "none/Cargo.toml");
    fs::write(place.path("Cargo.lock"), "<html>").unwrap();
    refused(&["out"], 2, "Cargo.lock has no packages");
    let left = fs::read_dir(&place.0).unwrap().count();
    assert_eq!(left, 2, "nothing was written");
}

#[test]
fn a_failed_write_names_the_file() {
    let place = Place::new("patch-failed");
    assert_eq!(patch(&place.0, &["out"]).status.code(), Some(0));
    let file = place.0.join("out/lock_api-0.5/Cargo.toml");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let failed = patch(&place.0, &["out"]);
    let said = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("out/lock_api-0.5/Cargo.toml: ") && failed.stdout.is_empty(), "{said}");
}
