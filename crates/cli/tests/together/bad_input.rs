//! The messages of the command where it cannot do what was asked: a full disk, a device, one
//! processor, a pipe.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Place, text};
use serde_json::Value;

fn stanchion(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .args(arguments)
        .output()
        .expect("it can be started")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("it was written")).expect("it is JSON")
}

/// The shell takes away all room on the disk: no file of the command may have more than this many
/// blocks of 512 bytes.
#[cfg(unix)]
fn with_room(blocks: u32, arguments: &str) -> Output {
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" {arguments}");
    Command::new("sh")
        .args(["-c", &limit, env!("CARGO_BIN_EXE_stanchion")])
        .output()
        .expect("there is a shell")
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_said_and_the_last_report_stays_whole() {
    let place = Place::new("full");
    let out = place.path("out");
    assert_eq!(stanchion(&["study", "fig3.5", "--quick", "--out", &out]).status.code(), Some(0));
    let read = || {
        ["report.html", "results.json"].map(|name| fs::read(Path::new(&out).join(name)).unwrap())
    };
    let before = read();
    let full = with_room(2, &format!("study fig3.5 --quick --seed 7 --out '{out}'"));
    let said = text(&full.stderr);
    assert_eq!(full.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write") && said.contains("report.html"), "{said}");
    assert!(said.contains("What stood there before is whole"), "{said}");
    assert_eq!(read(), before);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2, "nothing half-written is left");
}

/// A device is written to; it is not replaced by a file.
#[cfg(target_os = "linux")]
#[test]
fn a_copy_of_the_results_may_go_to_a_device() {
    use std::os::unix::fs::FileTypeExt as _;
    let place = Place::new("device");
    let out = place.path("out");
    let study = ["study", "all89/table3.1", "--quick", "--machine", "simulated", "--out", &out];
    let copy = |device: &str| stanchion(&[&study[..], &["--json", device]].concat());
    assert_eq!(copy("/dev/null").status.code(), Some(0));
    let full = copy("/dev/full");
    let said = text(&full.stderr);
    assert_eq!(full.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write /dev/full: No space left"), "{said}");
    for device in ["/dev/null", "/dev/full"] {
        assert!(fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
    }
    let lines = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.args(study).args(["--json", "-"]).stdout(lines);
    let said = text(&command.output().unwrap().stderr);
    assert!(said.contains("cannot write standard output: No space left"), "{said}");
}

/// With one processor nothing is decided by which thread waits for which, and that is said.
#[cfg(target_os = "linux")]
#[test]
fn one_processor_judges_nothing_and_is_no_failure() {
    use std::os::unix::process::CommandExt as _;
    let place = Place::new("one-processor");
    let out = place.path("out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.args(["study", "all89/fig4.3", "--quick", "--out", &out]);
    let alone = || {
        // SAFETY: all zeros are a set without processors.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the call has no conditions.
        let processor = unsafe { libc::sched_getcpu() }.unsigned_abs() as usize;
        // SAFETY: the set is this function's own, and the number of a running processor lies within
        // it or is ignored.
        unsafe { libc::CPU_SET(processor, &mut set) };
        // SAFETY: a plain system call that reads the set; it may be made between fork and exec.
        match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(alone) };
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let results = json(&Path::new(&out).join("results.json"));
    assert_eq!(results["machine"]["processors"].as_array().unwrap().len(), 1);
    let verdict = &results["experiments"][0]["verdict"];
    assert_eq!(verdict["is"], "not_judged", "{verdict}");
    assert!(verdict["because"].as_str().unwrap().contains("one processor"), "{verdict}");
}

/// Text that goes into a pipe has no control characters, although a terminal gets them.
#[test]
fn a_pipe_gets_lines_and_no_bar() {
    let place = Place::new("pipe");
    let out = place.path("out");
    for arguments in [
        &["study", "fig3.5", "fig5.1", "--quick", "--out", &out][..],
        &["machine"],
        &["calibrate", "Ticket", "--machine", "modern", "--runs", "1"],
    ] {
        let done = stanchion(arguments);
        assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", text(&done.stderr));
        for stream in [text(&done.stdout), text(&done.stderr)] {
            assert!(!stream.contains(|c: char| c.is_control() && c != '\n'), "{stream:?}");
        }
    }
}

#[test]
fn a_description_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let refused = stanchion(&["machine", "--write", "/nowhere/machine.json"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("/nowhere/machine.json: No such file"), "{said}");
    assert!(refused.stdout.is_empty());
}

/// A command that is printed can be typed: in a clone by cargo, elsewhere as it is installed.
#[test]
fn printed_commands_begin_as_the_command_was_run() {
    let printed = |package: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
        command.args(["study", "nonsense"]).env_remove("CARGO_PKG_NAME");
        command.envs(package.map(|package| ("CARGO_PKG_NAME", package)));
        text(&command.output().unwrap().stderr)
    };
    let said = printed(Some("stanchion-cli"));
    assert!(said.contains("`cargo stanchion study --list`"), "{said}");
    for said in [printed(None), printed(Some("xtask"))] {
        assert!(said.contains("`stanchion study --list`"), "{said}");
    }
}
