//! `stanchion stalls`: where the threads of a recorded program wait now.
//!
//! Each thread of such a program writes its wait into the shared table before it sleeps. So it is
//! enough to read the table, and `/proc` for the threads that do not wait there. The program gets
//! no signal and is not stopped.
//!
//! A program that is rebuilt records its locks in a table of its own, with or without the shim.

mod activity;
mod lock_text;
mod locks;
mod long;
mod signal;
mod table;
mod text;
mod view;

use std::path::{Path, PathBuf};
use std::time::Duration;

use stanchion_competitive::waits::shared::Shared;
use stanchion_study::output::Output;

use crate::args::StallsOptions;
use crate::watch::PROC;
use crate::watch::procfs::Process;
use view::Scope;

/// Why nothing was said of a program's threads.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no process {0}; `pgrep -f 'stanchion record'` lists those that record")]
    NoProcess(u32),

    #[error("{thread} is a thread of the process {process}: give {process}")]
    IsThread { thread: u32, process: u32 },

    #[error(
        "the process {0} is neither a `stanchion record` nor a program that one records, nor one that records its locks while STANCHION_ORDERS=FILE \
         is set, or it has ended or belongs to another user; `stanchion record --pid {0}` observes any program from outside"
    )]
    NotRecorded(u32),

    #[error(
        "the `stanchion record` of the process {0} has ended, and its table with it; `stanchion record --pid {0}` observes any program from outside"
    )]
    Over(u32),

    #[error("the table of waits {}: {reason}", path.display())]
    Table { path: PathBuf, reason: String },
}

impl Refusal {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Table { .. } => 1,
            _ => 2,
        }
    }
}

/// Prints where the threads of a process wait, or those of all processes that it records.
pub(crate) fn run(options: &StallsOptions) -> Result<(), Refusal> {
    let id = options.pid;
    let process = Process::at(Path::new(PROC), id);
    match process.group() {
        None => return Err(Refusal::NoProcess(id)),
        Some(group) if group != id => return Err(Refusal::IsThread { thread: id, process: group }),
        Some(_) => {}
    }
    let (table, scope) = match table::of(&process) {
        Ok((path, is_recorded)) => {
            let scope = if is_recorded { Scope::Only(id) } else { Scope::Under(id) };
            (Some((table::Table::open(&path)?, path)), scope)
        }
        Err(_) if locks::are_recorded(&process) => (None, Scope::Only(id)),
        Err(refusal) => return Err(refusal),
    };
    let table = table.as_ref().map(|(table, path)| (table.shared(), path.as_path()));
    let now = view::look(Path::new(PROC), table, scope);
    for line in text::lines(&now) {
        Output::Stdout.line(format_args!("{line}"));
    }
    Ok(())
}

/// Returns lines on the threads that still waited when the program ended. The table must have no
/// writers any more.
pub(crate) fn left(path: &Path) -> Vec<String> {
    table::Table::open(path)
        .map(|table| text::left(&view::left(table.shared())))
        .unwrap_or_default()
}

/// Prints the same of all processes that this one records, on standard error, each time that this
/// process gets SIGUSR1. With a limit also each time that a wait for a lock lasts for longer.
pub(crate) fn listen(path: &Path, limit: Option<Duration>) {
    // A table that cannot be mapped here cannot be in the program either, which then says so.
    let Ok(table) = table::Table::open(path) else { return };
    let table = table.shared();
    let file = path.to_owned();
    signal::each(move || print(table, &file));
    let Some(limit) = limit else { return };
    let file = path.to_owned();
    let mut long = long::Long::new(limit);
    let watch = move || {
        loop {
            std::thread::sleep(long.pause());
            let lines = long.new_ones(&table.current_waits(), activity::now_ns());
            lines.iter().for_each(|line| Output::Stderr.line(format_args!("stanchion: {line}")));
            if !lines.is_empty() {
                print(table, &file);
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("long waits".to_owned()).spawn(watch) {
        let line = format_args!("stanchion: --stalls-after has no effect: no thread: {error}");
        Output::Stderr.line(line);
    }
}

/// Prints where the threads of all processes wait that this one records.
fn print(table: &Shared, file: &Path) {
    let scope = Scope::Under(std::process::id());
    let now = view::look(Path::new(PROC), Some((table, file)), scope);
    for line in text::lines(&now) {
        Output::Stderr.line(format_args!("stanchion: {line}"));
    }
}
