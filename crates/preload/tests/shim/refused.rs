//! Each system call that the shim makes, refused in turn.
//!
//! Those that it makes once the program runs are refused by a filter that the program installs by
//! an instruction, which the shim does not see. Those of its start are refused by a filter under
//! which the program is started.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};

use stanchion_competitive::waits::Loss;
use stanchion_competitive::waits::shared::Gathered;

use crate::common::{built, of_kind, run_command};
use crate::filter::{self, REFUSED, Way};

/// Runs `PROGRAM WHAT` under the shim, with the refused calls in the variable.
fn run(program: &str, what: &str, policy: Option<&str>, refused: &str) -> (Output, Gathered) {
    let mut command = Command::new(built().join("examples").join(program));
    command.args(what.split(' ')).env(REFUSED, refused);
    run_command(&format!("{program}-{}", refused.replace([':', ','], "-")), command, policy)
}

/// Runs programs that need none of the refused calls themselves, and checks that they do what they
/// do without the shim.
fn run_all(refused: &str) -> Vec<Gathered> {
    let programs = [
        ("pthreads", "contend", None),
        ("pthreads", "contend", Some("adaptive")),
        ("pthreads", "conditions", Some("always-block")),
        ("waits", "often 2000", None),
    ];
    let run = |(program, what, policy)| {
        let (output, gathered) = run(program, what, policy, refused);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what} without {refused}: {}: {said}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{what} without {refused}");
        assert_eq!(said, "", "{what} without {refused}");
        gathered
    };
    programs.map(run).into()
}

/// The calls that the shim makes once the program runs, and what is lost without them.
const LATER: [(libc::c_long, Loss); 5] = [
    (libc::SYS_openat, Loss::Mappings),
    (libc::SYS_process_vm_readv, Loss::Stack),
    (libc::SYS_getrusage, Loss::Switches),
    (libc::SYS_getpid, Loss::Numbers),
    (libc::SYS_gettid, Loss::Numbers),
];

/// Refuses each of the calls that the shim makes once the program runs by that error.
fn refuse_later(error: i32) {
    for (number, loss) in LATER {
        let found = run_all(&format!("{number}:{error}"));
        let lost = found.iter().filter(|found| found.losses.contains(&loss)).count();
        assert!(lost >= 2, "{number}: {loss:?} in {lost}: {found:?}");
        let is_recorded = |found: &Gathered| !found.locks.is_empty();
        assert!([0, 1, 3].iter().all(|&run| is_recorded(&found[run])), "{number}: {found:?}");
    }
}

// Tests of their own, which run at the same time.
#[test]
fn each_call_may_be_forbidden_once_the_program_runs() {
    refuse_later(libc::EPERM);
}

#[test]
fn each_call_may_be_missing_once_the_program_runs() {
    refuse_later(libc::ENOSYS);
}

#[test]
fn calls_may_be_refused_for_the_program_too() {
    run_all(&format!("{}:{}", libc::SYS_openat, libc::EMFILE));
    for error in [libc::EMFILE, libc::EACCES] {
        run_all(&format!("{}:{error}", libc::SYS_perf_event_open));
    }
    for number in [
        libc::SYS_read,
        libc::SYS_close,
        libc::SYS_membarrier,
        libc::SYS_perf_event_open,
        libc::SYS_prlimit64,
        libc::SYS_prctl,
        libc::SYS_tgkill,
    ] {
        // The program needs none of them.
        run_all(&format!("{number}:{}", libc::ENOSYS));
    }
}

#[test]
fn names_of_pthread_mutexes_need_no_call() {
    let all: Vec<_> = LATER.map(|(number, _)| format!("{number}:{}", libc::EPERM)).into();
    let found = &run_all(&all.join(","))[0];
    let statics = of_kind(found, 'S');
    assert!(
        matches!(statics[..], [(name, count)] if name.contains("/pthreads+0x") && count > 50),
        "{found:?}"
    );
    let losses = [Loss::Mappings, Loss::Stack, Loss::Switches, Loss::Numbers];
    assert!(losses.iter().all(|loss| found.losses.contains(loss)), "{found:?}");
}

/// The calls that the shim makes as it starts, each with an argument that the loader does not pass.
const EARLIER: [(libc::c_long, Option<(u32, u32)>); 11] = [
    (libc::SYS_openat, Some((2, (libc::O_RDWR | libc::O_CLOEXEC) as u32))),
    (libc::SYS_lseek, None),
    (libc::SYS_mmap, Some((3, libc::MAP_SHARED as u32))),
    (libc::SYS_madvise, None),
    (libc::SYS_membarrier, None),
    (libc::SYS_sched_getaffinity, None),
    (libc::SYS_kill, None),
    (libc::SYS_getpid, None),
    (libc::SYS_gettid, None),
    (libc::SYS_readlink, None),
    (libc::SYS_prctl, None),
];

#[test]
fn each_call_may_be_refused_as_the_program_starts() {
    for (number, argument) in EARLIER {
        for (error, policy) in [(libc::EPERM, None), (libc::ENOSYS, Some("adaptive"))] {
            let mut filter = filter::refusing(number, argument, error);
            let mut command = Command::new(built().join("examples/pthreads"));
            command.arg("contend");
            // SAFETY: the call allocates nothing.
            unsafe { command.pre_exec(move || filter::install(&mut filter, Way::Prctl)) };
            let (output, found) = run_command(&format!("early-{number}-{error}"), command, policy);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{number}: {}: {said}", output.status);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{number}");
            let needs = [libc::SYS_openat, libc::SYS_lseek, libc::SYS_mmap];
            if needs.contains(&number) {
                assert!(said.contains("waits of this process are not recorded"), "{said}");
                assert_eq!((said.lines().count(), found.processes), (1, 0), "{said}");
            } else {
                assert_eq!((said.as_ref(), found.processes), ("", 1), "{number}");
                assert!(!found.locks.is_empty(), "{number}: {found:?}");
            }
        }
    }
}
