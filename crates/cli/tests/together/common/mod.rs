//! Helpers that the tests of the command share.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Returns what was printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it prints UTF-8")
}

/// A directory of its own for each test, removed at its end.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    /// Makes a directory. Its name has `name` in it, which several tests may choose.
    pub(crate) fn new(name: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(format!("stanchion-{name}-{process}-{number}"));
        fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
