//! The source of blocks that do not fit into memory: a wait, or a file with pages that the system
//! was told to forget.
//!
//! The file holds no data that the program computes with. It is read for the time that a read
//! takes. It is made in the directory for temporary files, has no name from then on, and is gone
//! with the program. Before each read `posix_fadvise(POSIX_FADV_DONTNEED)` drops the pages of the
//! block. If the system does not know that advice, or the file lies in memory (`tmpfs` ignores it),
//! reads are answered from memory. The report tells how long a read took.

use std::fs::File;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of a block in the file: so many that the system reads no two of them at once.
const BYTES: usize = 256 << 10;

/// The cost of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The thread sleeps in the kernel for so long.
    For(Duration),
    /// The thread reads from a file.
    File,
}

impl std::str::FromStr for Miss {
    type Err = String;

    /// `file`, or a number and `ms`, `us` or `s`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "file" {
            return Ok(Self::File);
        }
        let units = [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("s", 1.0)];
        let found = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
        let number = found.and_then(|(number, size)| Some(number.parse::<f64>().ok()? * size));
        let length = number.filter(|seconds| (1e-6..=10.0).contains(seconds));
        length
            .map(|seconds| Self::For(Duration::from_secs_f64(seconds)))
            .ok_or_else(|| "must be `file`, or a time from 1us to 10s such as 50ms".to_owned())
    }
}

impl std::fmt::Display for Miss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::For(length) => write!(f, "{length:?}"),
            Self::File => f.write_str("a read from a file"),
        }
    }
}

/// The reader that misses wait for.
pub struct Reader {
    /// The way in which it reads.
    means: Means,
    /// The number of reads. Counted by the threads that miss.
    reads: AtomicU64,
    /// The sum of their times, in nanoseconds.
    nanos: AtomicU64,
    /// The first error of a read.
    failed: OnceLock<io::Error>,
}

enum Means {
    Sleep(Duration),
    #[cfg(unix)]
    File(File),
}

impl Reader {
    /// For so many blocks.
    pub fn new(miss: Miss, blocks: usize) -> io::Result<Self> {
        let means = match miss {
            Miss::For(length) => Means::Sleep(length),
            Miss::File => file(blocks)?,
        };
        Ok(Self {
            means,
            reads: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            failed: OnceLock::new(),
        })
    }

    /// Returns the number of reads so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// Returns the mean time of a read, or the error of one that failed.
    pub fn mean(self) -> io::Result<Option<Duration>> {
        match self.failed.into_inner() {
            Some(error) => Err(error),
            None => {
                let nanos = self.nanos.into_inner().checked_div(self.reads.into_inner());
                Ok(nanos.map(Duration::from_nanos))
            }
        }
    }

    /// Reads a block, on the thread that calls, which waits.
    pub fn read(&self, block: usize) {
        let began = Instant::now();
        match &self.means {
            // A call to the kernel: no runtime learns that this waits.
            Means::Sleep(length) => std::thread::sleep(*length),
            #[cfg(unix)]
            Means::File(file) => {
                if let Err(error) = read(file, block) {
                    let _ = self.failed.set(error);
                }
            }
        }
        // Relaxed: read when all threads have been joined.
        self.reads.fetch_add(1, Relaxed);
        self.nanos.fetch_add(began.elapsed().as_nanos() as u64, Relaxed);
    }
}

#[cfg(unix)]
fn file(blocks: usize) -> io::Result<Means> {
    let name = format!("nbody-{:016x}.blocks", stanchion_machine::hint::entropy());
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    let mut file = options.read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    let mut block = vec![0_u8; BYTES];
    for number in 0..blocks {
        block[..8].copy_from_slice(&(number as u64).to_le_bytes());
        file.write_all(&block)?;
    }
    // Only data on the disk can be forgotten.
    file.sync_all()?;
    Ok(Means::File(file))
}

#[cfg(not(unix))]
fn file(_blocks: usize) -> io::Result<Means> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "`--miss file` wants a Unix"))
}

#[cfg(unix)]
fn read(file: &File, block: usize) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let from = (block * BYTES) as u64;
    forget(file, from);
    // Only the first page is looked at, and the kernel's reading ahead is its business.
    let mut page = vec![0; 4_096];
    file.read_exact_at(&mut page, from)?;
    let number = page.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    if number == Some(block as u64) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("block {block} of the file is another")))
}

#[cfg(target_os = "linux")]
fn forget(file: &File, from: u64) {
    use std::os::fd::AsRawFd;
    // A refusal makes the read faster, which the report shows.
    // SAFETY: the descriptor is open; advice changes no memory of ours.
    let _ = unsafe {
        libc::posix_fadvise(
            file.as_raw_fd(),
            from as libc::off_t,
            BYTES as libc::off_t,
            libc::POSIX_FADV_DONTNEED,
        )
    };
}

#[cfg(all(unix, not(target_os = "linux")))]
fn forget(_file: &File, _from: u64) {}
