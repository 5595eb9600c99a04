//! The walk: a job for each directory and for each file, which a [`Crew`] runs in whatever kind of
//! thread it has.
//!
//! What comes of it does not depend on the order in which jobs run: it is sorted by path.

use super::hash::{self, Hash};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A runtime that runs the jobs.
pub trait Crew: Sized + Send + Sync + 'static {
    /// Has `job` run, sooner or later, by any thread. Called by a thread of the crew.
    fn start(&self, job: impl FnOnce() + Send + 'static);
}

/// A file and its hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hashed {
    /// Below the root.
    pub path: PathBuf,
    /// The hash of the file.
    pub hash: u64,
    /// The length of the file.
    pub bytes: u64,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub struct Found {
    /// By path.
    pub files: Vec<Hashed>,
    /// The number of directories.
    pub directories: u64,
    /// Links, which are not followed, and pipes, devices and sockets.
    pub(crate) links: u64,
    /// The number of files that are neither directories nor regular.
    pub(crate) special: u64,
    /// The paths that could not be read, with the errors.
    pub faults: Vec<(PathBuf, io::Error)>,
}

impl Found {
    /// Returns the sum of the lengths of the files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The hash of all names and hashes, in order. Two trees have the same if they have the same
    /// files with the same content, wherever they are.
    pub fn tree(&self) -> u64 {
        let mut tree = Hash::new();
        for file in &self.files {
            tree.write(file.path.as_os_str().as_encoded_bytes());
            // No name has a zero in it.
            tree.write(&[0]);
            tree.write(&file.hash.to_be_bytes());
        }
        tree.finish()
    }
}

/// A walk that goes on.
pub struct Walk<C> {
    /// The runtime.
    crew: C,
    /// The path that the walk began at.
    root: PathBuf,
    /// The result so far. Written by every job.
    found: Mutex<Found>,
    /// Jobs that have been started and have not ended.
    jobs: AtomicUsize,
    /// Notified when the last job has ended.
    ended: Condvar,
}

/// One job, until it is dropped.
struct Job<C> {
    /// The walk that the job is of.
    walk: Arc<Walk<C>>,
    /// Below the root.
    path: PathBuf,
}

impl<C> Drop for Job<C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.walk.fault(&self.path, io::Error::other("the thread that read it has panicked"));
        }
        // AcqRel: with the ends of all other jobs. So the thread that sees 0 sees the results of
        // all. (The lock ensures that too.)
        if self.walk.jobs.fetch_sub(1, Ordering::AcqRel) == 1 {
            let _found = self.walk.found();
            self.walk.ended.notify_all();
        }
    }
}

impl<C: Crew> Walk<C> {
    /// Returns a walk of the files at `root`, or below it, by that crew. Its first job is that of
    /// [`begin`](Self::begin).
    pub fn new(crew: C, root: &Path) -> Arc<Self> {
        Arc::new(Self {
            crew,
            root: root.to_owned(),
            found: Mutex::default(),
            jobs: AtomicUsize::new(1),
            ended: Condvar::new(),
        })
    }

    /// The first job. To be called once, by a thread of the crew.
    pub fn begin(self: &Arc<Self>) {
        let job = Job { walk: self.clone(), path: PathBuf::new() };
        // The user's own word: a link is followed.
        match fs::metadata(&self.root) {
            Ok(data) if data.is_dir() => job.directory(),
            Ok(_) => job.file(),
            Err(error) => self.fault(&job.path, error),
        }
    }

    /// Waits until all jobs have ended. Returns the result.
    pub fn end(&self) -> Found {
        let mut found = self.found();
        // Acquire: pairs with the ends of the jobs.
        while self.jobs.load(Ordering::Acquire) > 0 {
            found = self.ended.wait(found).unwrap_or_else(PoisonError::into_inner);
        }
        let mut found = std::mem::take(&mut *found);
        found.files.sort_unstable();
        found.faults.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }

    fn start(self: &Arc<Self>, path: PathBuf, body: impl FnOnce(&Job<C>) + Send + 'static) {
        // Relaxed: the caller's own job has not ended.
        self.jobs.fetch_add(1, Ordering::Relaxed);
        let job = Job { walk: self.clone(), path };
        self.crew.start(move || body(&job));
    }
}

impl<C> Walk<C> {
    fn found(&self) -> MutexGuard<'_, Found> {
        // No thread panics while it has it, and each change is whole.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, path: &Path, error: io::Error) {
        self.found().faults.push((path.to_owned(), error));
    }
}

impl<C: Crew> Job<C> {
    /// Returns its path.
    fn place(&self) -> PathBuf {
        match self.path.as_os_str().is_empty() {
            // A file with a slash behind it would be none.
            true => self.walk.root.clone(),
            false => self.walk.root.join(&self.path),
        }
    }

    /// A job for each entry.
    fn directory(&self) {
        let (mut links, mut special) = (0, 0);
        let read = || -> io::Result<()> {
            for entry in fs::read_dir(self.place())? {
                let entry = entry?;
                let path = self.path.join(entry.file_name());
                // Of a link it is the link's own: one that leads upwards would be followed for
                // ever.
                let kind = match entry.file_type() {
                    Ok(kind) => kind,
                    Err(error) => {
                        self.walk.fault(&path, error);
                        continue;
                    }
                };
                // Not the entry, which would keep the directory open until the last job has begun.
                if kind.is_dir() {
                    self.walk.start(path, Job::directory);
                } else if kind.is_file() {
                    self.walk.start(path, Job::file);
                } else if kind.is_symlink() {
                    links += 1;
                } else {
                    special += 1;
                }
            }
            Ok(())
        };
        let result = { read }();
        let mut found = self.walk.found();
        found.directories += 1;
        found.links += links;
        found.special += special;
        drop(found);
        if let Err(error) = result {
            self.walk.fault(&self.path, error);
        }
    }

    /// Plain calls that block.
    fn file(&self) {
        match File::open(self.place()).and_then(|mut file| hash::of(&mut file)) {
            Ok((hash, bytes)) => {
                let hashed = Hashed { path: self.path.clone(), hash, bytes };
                self.walk.found().files.push(hashed);
            }
            Err(error) => self.walk.fault(&self.path, error),
        }
    }
}
