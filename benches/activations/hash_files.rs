//! A directory of small files, with a thread for each file. The thread opens, reads and hashes its
//! file with plain `std::fs`. The contestants are those of `examples/hasher`.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use crate::cold;
use crate::contest::{self, Contestant};
use crate::crews::{CREWS, Size};
use crate::measure::{by, process_time, processors};
use crate::options::Options;

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

pub(crate) fn run(options: &Options) {
    let cells = ["cold", "warm"].map(|state| {
        let cell = format!("hash: {} files, {state}", options.number("--files"));
        let wanted = options.wants_cell(&cell);
        (state, cell, wanted)
    });
    if !cells.iter().any(|(.., wanted)| *wanted) {
        return;
    }
    let files = match Files::new(options.number("--files") as usize) {
        Ok(files) => files,
        Err(error) => return eprintln!("hash: the files cannot be made: {error}"),
    };
    for (state, cell, _) in cells {
        contest::nanos(&cell, contestants(&files.0, state == "cold"), options);
    }
    println!(
        "cold: posix_fadvise(DONTNEED) of each file before each run; names and attributes stay in memory"
    );
}

fn contestants(root: &Path, cold: bool) -> Vec<Contestant<'_>> {
    let size = Size { processors: processors(), threads: THREADS };
    let runs = CREWS.iter().map(|crew| (crew.name.to_owned(), crew.run, size));
    let first = Rc::new(OnceCell::new());
    let crowd = Size { processors: THREADS, ..size };
    let rayon = CREWS.iter().filter(|crew| crew.name == "rayon");
    let more = rayon.map(|crew| (format!("rayon, {THREADS} threads"), crew.run, crowd));
    runs.chain(more)
        .map(|(name, run, size)| {
            let first = first.clone();
            Contestant::new(name, move || {
                if cold {
                    cold::forget(root).expect("anybody may");
                }
                let (cpu, begun) = (process_time(), Instant::now());
                let (found, _) = run(size, root).expect("few threads");
                let figures = by(begun, cpu, found.files.len() as u64);
                assert!(found.faults.is_empty(), "files of our own: {:?}", found.faults);
                let (tree, bytes) = (found.tree(), found.bytes());
                assert_eq!(
                    *first.get_or_init(|| (tree, bytes)),
                    (tree, bytes),
                    "all read the same"
                );
                figures
            })
        })
        .collect()
}
