//! A directory of small files, with a thread for each file. The thread opens, reads and hashes its
//! file with plain `std::fs`. The contestants are those of `examples/hasher`.
//!
//! Cold files are forgotten by the kernel before each run (`posix_fadvise(DONTNEED)`). Their names
//! and attributes stay in memory.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use criterion::Criterion;
use examples::hasher::cold;
use examples::hasher::crews::{CREWS, Outcome, Size};
use stanchion_contests::work::{process_time, processors};

use crate::cells::scaled;
use crate::suite::{bench, windows};

/// The number of files.
const FILES: usize = 2_000;

/// The most kernel threads of the contestants that start more than one for each processor.
const THREADS: usize = 64;

/// The number of files in a directory.
const TOGETHER: usize = 100;

/// Files of 1 to 8 KiB. They are removed in the end.
struct Files(PathBuf);

impl Files {
    fn new(count: usize) -> std::io::Result<Self> {
        let name = format!("bench-activations-{}", std::process::id());
        let files = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        let content: Vec<u8> = (0..16 << 10_u32).map(|byte| ((byte * byte) >> 3) as u8).collect();
        for file in 0..count {
            let directory = files.0.join(format!("d{}", file / TOGETHER));
            if file % TOGETHER == 0 {
                fs::create_dir_all(&directory)?;
            }
            let (from, length) = (file % 4_096, 1_024 + file * 769 % (7 << 10));
            fs::write(directory.join(format!("f{file}")), &content[from..from + length])?;
        }
        Ok(files)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // The files are in the target directory, so nothing is lost if they stay.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A figure of a run.
#[derive(Clone, Copy)]
enum Figure {
    Time,
    ProcessorTime,
}

pub(crate) fn measure(criterion: &mut Criterion) {
    // Made by the first benchmark that the filter matches.
    let files = OnceCell::new();
    // The result of the first run, which all others have to reach.
    let found = OnceCell::new();
    for (state, cold) in [("warm", false), ("cold", true)] {
        for (called, figure) in [("", Figure::Time), (", processor time", Figure::ProcessorTime)] {
            let mut group = criterion.benchmark_group(format!("hash, {state}{called}"));
            windows(&mut group);
            for (name, run, size) in contestants() {
                bench(&mut group, &name, |bencher| {
                    let files: &Files = files.get_or_init(|| Files::new(FILES).expect("room"));
                    bencher.iter_custom(|operations| {
                        let ns = hash(&files.0, cold, figure, &found, |root| run(size, root));
                        scaled(ns, operations)
                    });
                });
            }
            group.finish();
        }
    }
}

/// A function that hashes what is below the path.
type Crew = fn(Size, &Path) -> Outcome;

/// Returns the names of the contestants, their functions, and the numbers of threads.
fn contestants() -> Vec<(String, Crew, Size)> {
    let size = Size { processors: processors(), threads: THREADS };
    let crowd = Size { processors: THREADS, ..size };
    let rayon = CREWS.iter().filter(|crew| crew.name == "rayon");
    let more = rayon.map(|crew| (format!("rayon, {THREADS} threads"), crew.run, crowd));
    CREWS.iter().map(|crew| (crew.name.to_owned(), crew.run, size)).chain(more).collect()
}

/// Hashes all files once. Returns the time of a file in nanoseconds.
fn hash(
    root: &Path,
    cold: bool,
    figure: Figure,
    first: &OnceCell<(u64, u64)>,
    run: impl Fn(&Path) -> Outcome,
) -> f64 {
    if cold {
        cold::forget(root).expect("every user may");
    }
    let (cpu, begun) = (process_time(), Instant::now());
    let (found, _) = run(root).expect("few threads");
    let nanos = match figure {
        Figure::Time => begun.elapsed().as_nanos() as f64,
        Figure::ProcessorTime => (process_time() - cpu) as f64,
    };
    assert!(found.faults.is_empty(), "files of our own: {:?}", found.faults);
    let result = (found.tree(), found.bytes());
    assert_eq!(*first.get_or_init(|| result), result, "all read the same");
    nanos / found.files.len() as f64
}
