//! Runs the body of a test in a process of its own: the test program again, with that test only.
//!
//! A test needs one if it changes its process (its user, its filters, its limits), ends it, uses up
//! what other tests need, or asserts what holds at the start of a process.
//!
//! The parent runs the body in no case, so a test is one call:
//!
//! ```no_run
//! #[test]
//! fn a_panic_hook_runs_once() {
//!     stanchion_alone::alone("a_panic_hook_runs_once", || {
//!         std::panic::set_hook(Box::new(|_| ()));
//!     });
//! }
//! ```

#[cfg(target_os = "linux")]
mod linux;
mod sleepers;

#[cfg(target_os = "linux")]
pub use linux::{filter, in_a_fork, limit_memory, refusal, threads};
pub use sleepers::Sleepers;

use std::env;
use std::process::{Command, ExitStatus};

/// The variable that names to a child the test that it runs.
const CHILD: &str = "STANCHION_ALONE";

/// The end of a child.
#[derive(Debug)]
pub struct End {
    /// The exit status.
    pub status: ExitStatus,
    /// The text of its standard output.
    pub out: String,
    /// The text of its standard error.
    pub err: String,
}

impl End {
    /// Fails unless the child ran its test, and the test passed.
    #[track_caller]
    pub fn passed(&self) -> &Self {
        assert!(self.status.success(), "{}\n{}\n{}", self.status, self.out, self.err);
        assert!(self.out.contains("1 passed"), "there is no test of that name: {}", self.out);
        self
    }

    /// Fails unless the child wrote `text` to its standard error.
    #[track_caller]
    pub fn saying(&self, text: &str) -> &Self {
        assert!(self.err.contains(text), "`{text}` is not in:\n{}", self.err);
        self
    }

    /// Fails if the child wrote `text` to its standard error.
    #[track_caller]
    pub fn not_saying(&self, text: &str) -> &Self {
        assert!(!self.err.contains(text), "`{text}` is in:\n{}", self.err);
        self
    }

    /// Fails unless the child ended with `code`.
    #[track_caller]
    pub fn with_code(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{}\n{}", self.out, self.err);
        self
    }

    /// Fails unless `signal` ended the child.
    #[cfg(unix)]
    #[track_caller]
    pub fn by_signal(&self, signal: i32) -> &Self {
        let ended_by = std::os::unix::process::ExitStatusExt::signal(&self.status);
        assert_eq!(ended_by, Some(signal), "{}\n{}", self.out, self.err);
        self
    }
}

/// Returns whether this process is a child that runs one test.
#[must_use]
pub fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Runs `body`, the body of the test called `test`, in a child, and fails if the child does. The
/// name is that of `cargo test -- --list`.
#[track_caller]
pub fn alone(test: &str, body: impl FnOnce()) {
    alone_with(test, |_| (), body);
}

/// Does what [`alone`] does, with a command that `prepare` has changed.
#[track_caller]
pub fn alone_with(test: &str, prepare: impl FnOnce(&mut Command), body: impl FnOnce()) {
    if let Some(end) = run(test, prepare, body) {
        end.passed();
    }
}

/// Runs `body` as [`alone`] does, and returns the child's end to the parent. The child gets `None`.
/// It leaves no core file, because it may be meant to die of a signal.
#[must_use = "the child may have failed"]
pub fn end(test: &str, body: impl FnOnce()) -> Option<End> {
    run(
        test,
        |_| (),
        || {
            #[cfg(unix)]
            {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                // SAFETY: the limit is initialized.
                unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
            }
            body();
        },
    )
}

fn run(test: &str, prepare: impl FnOnce(&mut Command), body: impl FnOnce()) -> Option<End> {
    if is_child() {
        body();
        return None;
    }
    let mut child = Command::new(env::current_exe().expect("a program has a path"));
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, test);
    prepare(&mut child);
    let output = child.output().expect("this program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(End { status: output.status, out: text(&output.stdout), err: text(&output.stderr) })
}
