//! Prints what `compensate_blocking` costs and gains:
//! `cargo run --release -p stanchion-threadpool --example compensate`.
//!
//! Two programs, each with and without it, in turn, on two threads. *Warm files*: tasks that read
//! files of 4 kB from memory, and never block. *Sleeps*: tasks that sleep 1 ms and compute for
//! about 1 ms. It prints medians over the rounds.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use stanchion_threadpool::{BuildError, ThreadPool, ThreadPoolBuilder};

const ROUNDS: usize = 15;
const FILES: usize = 500;
const READS: usize = 40_000;
const SLEEPS: usize = 300;

/// Returns the processor time that the process has used.
fn used() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn hash(data: impl IntoIterator<Item = u8>) {
    black_box(
        data.into_iter()
            .fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte))),
    );
}

fn warm_files(pool: &ThreadPool, paths: &[PathBuf]) {
    pool.scope(|s| {
        for path in paths.iter().cycle().take(READS) {
            s.spawn(move |_| hash(fs::read(path).unwrap_or_default()));
        }
    });
}

fn sleeps(pool: &ThreadPool) {
    pool.scope(|s| {
        for _ in 0..SLEEPS {
            s.spawn(|_| {
                sleep(Duration::from_millis(1));
                hash((0..500_000_u32).map(|n| black_box(n) as u8));
            });
        }
    });
}

/// Runs `program` in a pool of two; returns the time and the processor time that it takes.
fn run(compensates: bool, program: &dyn Fn(&ThreadPool)) -> Result<[Duration; 2], BuildError> {
    let pool = ThreadPoolBuilder::new().num_threads(2).compensate_blocking(compensates).build()?;
    let (begin, before) = (Instant::now(), used());
    program(&pool);
    let times = [begin.elapsed(), used() - before];
    pool.shutdown();
    Ok(times)
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    (0..FILES)
        .map(|number| {
            let path = folder.join(number.to_string());
            fs::write(&path, [7; 4_096]).map(|()| path)
        })
        .collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("compensate-{}", std::process::id()));
    let paths = files(&folder)?;
    let warm = |pool: &ThreadPool| warm_files(pool, &paths);
    for (name, program) in [("warm files", &warm as &dyn Fn(&ThreadPool)), ("sleeps", &sleeps)] {
        let mut times = [[const { Vec::new() }; 2], [const { Vec::new() }; 2]];
        for _ in 0..ROUNDS {
            for compensates in [false, true] {
                let [time, processor] = run(compensates, program)?;
                times[usize::from(compensates)][0].push(time);
                times[usize::from(compensates)][1].push(processor);
            }
        }
        let medians = times.map(|kinds| {
            kinds.map(|mut times| {
                times.sort_unstable();
                times[times.len() / 2].as_secs_f64()
            })
        });
        let [[time, processor], [with, with_processor]] = medians;
        println!(
            "{name:<10}  time {:.0} ms, with it {:.0} ms; processor time {:.0} ms, with it {:.0} ms ({:+.0} %)",
            time * 1e3,
            with * 1e3,
            processor * 1e3,
            with_processor * 1e3,
            (with_processor / processor - 1.0) * 100.0
        );
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}
