//! Helpers for tests that need a process of their own, because they end it, or use up what the
//! other tests need.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

const MARK: &str = "STANCHION_STACK_CHILD";

/// The end of a child.
pub(crate) struct End {
    /// The exit status.
    pub(crate) status: ExitStatus,
    /// The text of its standard output.
    pub(crate) out: String,
    /// The text of its standard error.
    pub(crate) err: String,
}

impl End {
    #[track_caller]
    pub(crate) fn by_signal(&self, signal: i32) -> &Self {
        assert_eq!(self.status.signal(), Some(signal), "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn with_code(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn saying(&self, text: &str) -> &Self {
        assert!(self.err.contains(text), "`{text}` is not in:\n{}", self.err);
        self
    }

    #[track_caller]
    pub(crate) fn not_saying(&self, text: &str) -> &Self {
        assert!(!self.err.contains(text), "`{text}` is in:\n{}", self.err);
        self
    }
}

/// Runs `body` in a child that runs this test alone. Returns the child's end to the parent, and
/// `None` to the child itself.
pub(crate) fn alone(test: &str, body: impl FnOnce()) -> Option<End> {
    if env::var_os(MARK).is_some() {
        // These children are meant to die of signals: make no core files.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is initialized.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
        body();
        return None;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(End { status: output.status, out: text(&output.stdout), err: text(&output.stderr) })
}

/// Runs `body` as [`alone`] does, and fails if the child does.
#[track_caller]
pub(crate) fn passes_alone(test: &str, body: impl FnOnce()) {
    let Some(end) = alone(test, body) else { return };
    assert!(end.status.success() && end.out.contains("1 passed"), "{}\n{}", end.out, end.err);
}
