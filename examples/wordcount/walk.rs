//! The tasks: one for each thing in a directory, and one for each part of a large file. A task
//! creates others in the scope that it is in; when the scope ends, all has been seen.
//!
//! Counts go to the table of the worker that made them, so that its lock is free whenever it is
//! asked for. A file of several parts is counted in a table of its own until the last part is
//! there: it counts whole or not at all.

use super::fault::Fault;
use super::part::{self, parts};
use super::tally::Tally;
use crate::strategies::OverPool;
use stanchion_competitive::Mutex;
use stanchion_threadpool::{Scope, Strategy, ThreadPool, current_thread_index};
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The options of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The paths that it begins at.
    pub roots: &'a [PathBuf],
    /// Set if names that begin with a dot are looked at.
    pub hidden: bool,
    /// Bytes of a part.
    pub part: u64,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub struct Found {
    /// The counts.
    pub tally: Tally,
    /// The number of directories.
    pub directories: u64,
    /// The paths that were passed over.
    pub(crate) passed: Passed,
    /// By path.
    pub faults: Vec<(PathBuf, Fault)>,
    /// The metrics of the pool.
    pub(crate) metrics: String,
}

/// The paths that were not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The number of names that begin with a dot.
    pub(crate) hidden: u64,
    /// The number of links.
    pub(crate) links: u64,
    /// Pipes, devices and sockets.
    pub(crate) special: u64,
}

impl OverPool for Search<'_> {
    type Outcome = Found;

    fn run<S: Strategy>(self, pool: &ThreadPool<S>) -> Found {
        let walk = Walk {
            search: self,
            tables: (0..pool.current_num_threads()).map(|_| Mutex::default()).collect(),
            rest: Mutex::default(),
        };
        let shared = &walk;
        pool.scope(|scope| {
            for root in self.roots {
                scope.spawn(move |scope| shared.visit(scope, root, fs::metadata(root)));
            }
        });
        let Walk { tables, rest, .. } = walk;
        let mut found = rest.into_inner();
        let tables = tables.into_iter().map(Mutex::into_inner).collect();
        found.tally = pool.install(|| together(tables));
        found.faults.sort_by(|one, other| one.0.cmp(&other.0));
        found.metrics = pool.metrics().to_string();
        found
    }
}

/// The sum of all, two by two.
fn together(mut tables: Vec<Tally>) -> Tally {
    if tables.len() < 2 {
        return tables.pop().unwrap_or_default();
    }
    let others = tables.split_off(tables.len() / 2);
    let (mut one, other) = stanchion_threadpool::join(|| together(tables), || together(others));
    one.merge(other);
    one
}

/// The data that the tasks share.
struct Walk<'a> {
    /// The options.
    search: Search<'a>,
    /// A table for each worker.
    tables: Vec<Mutex<Tally>>,
    /// All but the tally.
    rest: Mutex<Found>,
}

/// A file of more than one part, and what its parts have come to so far.
struct Parts {
    /// The path of the file.
    path: PathBuf,
    /// The number of parts that are not counted yet. Counted down by the tasks.
    left: AtomicUsize,
    /// The sum of the counted parts. Written by the tasks.
    sum: Mutex<Result<Tally, Fault>>,
}

impl Walk<'_> {
    /// Looks at the file or directory at `path`.
    fn visit<'s>(&'s self, scope: &Scope<'s>, path: &Path, data: io::Result<Metadata>) {
        match data {
            Ok(data) if data.is_dir() => {
                if let Err(error) = self.directory(scope, path) {
                    self.fault(path, error.into());
                }
            }
            Ok(data) if data.is_file() => self.file(scope, path, data.len()),
            Ok(data) if data.is_symlink() => self.rest.lock().passed.links += 1,
            Ok(_) => self.rest.lock().passed.special += 1,
            Err(error) => self.fault(path, error.into()),
        }
    }

    /// A task for each entry.
    fn directory<'s>(&'s self, scope: &Scope<'s>, path: &Path) -> io::Result<()> {
        self.rest.lock().directories += 1;
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if !self.search.hidden && entry.file_name().as_encoded_bytes().starts_with(b".") {
                self.rest.lock().passed.hidden += 1;
                continue;
            }
            // Not the entry, which would keep the directory open until the last task has begun:
            // there are fewer files that may be open than directories.
            let path = entry.path();
            // Of a link it is the link's own: one that leads upwards would be followed for ever.
            scope.spawn(move |scope| self.visit(scope, &path, fs::symlink_metadata(&path)));
        }
        Ok(())
    }

    /// Counts the first part, which most often shows whether it is text, and creates a task for
    /// each other.
    fn file<'s>(&'s self, scope: &Scope<'s>, path: &Path, length: u64) {
        let mut parts = parts(length, self.search.part);
        let first = parts.next().map_or(Ok(Tally::default()), |part| count(path, part));
        let sum = match first {
            Ok(sum) => Tally { files: 1, ..sum },
            Err(fault) => return self.fault(path, fault),
        };
        if parts.len() == 0 {
            return self.keep(sum);
        }
        let file = Arc::new(Parts {
            path: path.to_owned(),
            left: AtomicUsize::new(parts.len()),
            sum: Mutex::new(Ok(sum)),
        });
        for part in parts {
            let file = Arc::clone(&file);
            scope.spawn(move |_| self.part(&file, part));
        }
    }

    fn part(&self, file: &Parts, part: Range<u64>) {
        let counted = count(&file.path, part);
        {
            let mut sum = file.sum.lock();
            match (&mut *sum, counted) {
                (Ok(sum), Ok(tally)) => sum.merge(tally),
                (Ok(_), Err(fault)) => *sum = Err(fault),
                // The first in the file, in whichever order the parts came.
                (Err(first), Err(fault)) if fault.place() < first.place() => *first = fault,
                (Err(_), _) => {}
            }
        }
        // AcqRel: the last task sees the parts that the others added to the sum. (So it would with
        // the lock alone.)
        if file.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        match std::mem::replace(&mut *file.sum.lock(), Ok(Tally::default())) {
            Ok(sum) => self.keep(sum),
            Err(fault) => self.fault(&file.path, fault),
        }
    }

    /// Adds a file to the worker's table.
    fn keep(&self, sum: Tally) {
        // A spare worker has no table of its own.
        let index = current_thread_index().unwrap_or(0) % self.tables.len();
        self.tables[index].lock().merge(sum);
    }

    fn fault(&self, path: &Path, fault: Fault) {
        self.rest.lock().faults.push((path.to_owned(), fault));
    }
}

fn count(path: &Path, part: Range<u64>) -> Result<Tally, Fault> {
    let (first, text) = part::read(&mut File::open(path)?, part)?;
    let mut tally = Tally::default();
    tally.count(&text, first)?;
    Ok(tally)
}
