//! The file of reports, which the variable of the environment names.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::json::{self, Pairs};
use crate::report::Report;
use crate::{process, switch};

static FILE: OnceLock<PathBuf> = OnceLock::new();

/// The reason of the first failure to write.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

/// Begins with the file that was named. `at_exit` runs when the process ends.
pub(crate) fn begin(file: OsString, at_exit: extern "C" fn()) {
    if FILE.set(PathBuf::from(file)).is_ok() {
        process::at_exit(at_exit);
    }
}

/// Appends findings to the file, if one was named: for a person, then on one line for tools. At the
/// end of the process it gets the pairs too. Keeps the reason if that fails: a library prints
/// nothing.
pub(crate) fn append(report: &Report, pairs: Option<&Pairs>) {
    let Some(path) = FILE.get() else { return };
    // A program and its children may have the same file.
    let line = json::line(report, pairs);
    let text = format!("process {}\n{report}{line}\n", std::process::id());
    let opened = OpenOptions::new().create(true).append(true).open(path);
    if let Err(error) = opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        let remedy = format!("{} names a file that can be written", switch::VARIABLE);
        let why = format!("{}: {error}; see that {remedy}", path.display());
        FAILURE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }
}

/// Returns the reason of the first failure to write.
pub(crate) fn failure() -> Option<String> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
