//! A place in the target directory for the files of a test.

use std::fs;
use std::path::{Path, PathBuf};

/// A path of its own for a test, where nothing is yet; what comes there is removed when the test is
/// done.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// `name` is the test's, among those of its file.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("{}-{name}-{}", env!("CARGO_CRATE_NAME"), std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    /// Makes a directory with these files in it, and the directories that they need.
    #[allow(dead_code, reason = "some programs read no directory")]
    pub(crate) fn with(name: &str, files: &[(&str, &[u8])]) -> Self {
        let scratch = Self::new(name);
        fs::create_dir_all(&scratch.0).expect("a scratch directory");
        for (file, content) in files {
            let path = scratch.0.join(file);
            fs::create_dir_all(path.parent().expect("below")).expect("a directory");
            fs::write(path, content).expect("a scratch file");
        }
        scratch
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("a path of text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It lies in the target directory: if it stays, nothing is lost.
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(&self.0);
    }
}
