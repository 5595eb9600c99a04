//! Tasks that block in the kernel without saying so. Each test waits for something that happens
//! only if other tasks run meanwhile. Without compensation it never ends.

#![cfg(all(target_os = "linux", not(miri)))]

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use stanchion_machine::presence::{self, Declined};
use stanchion_threadpool::strategy::SingleLock;
use stanchion_threadpool::{ThreadPool, ThreadPoolBuilder, blocking, scope, spawn};

/// The lock of all tests of this program, which choose how pools see their workers. One test runs
/// at a time: declining is for the whole process, and some tests count all monitors.
struct Tier {
    _declined: Option<Declined>,
    _alone: MutexGuard<'static, ()>,
}

/// Runs `body` with switch records, if there are any, and without.
fn in_both_tiers(body: impl Fn()) {
    static ALONE: Mutex<()> = Mutex::new(());
    for declines in [false, true] {
        let _tier = Tier {
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
            _declined: declines.then(presence::decline),
        };
        body();
    }
}

fn builder(threads: usize) -> ThreadPoolBuilder {
    ThreadPoolBuilder::new().num_threads(threads).compensate_blocking(true)
}

fn pool(threads: usize) -> ThreadPool {
    builder(threads).build().unwrap()
}

/// Blocks in `read` until the other end writes or goes.
fn wait_for(mut reader: PipeReader) {
    let mut byte = [0];
    reader.read_exact(&mut byte).unwrap();
}

fn tell(mut writer: PipeWriter) {
    writer.write_all(&[1]).unwrap();
}

fn until(wanted: impl Fn() -> bool) {
    let start = Instant::now();
    while !wanted() {
        assert!(start.elapsed() < Duration::from_secs(120), "it never comes");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_task_that_blocks_waits_for_one_behind_it() {
    in_both_tiers(|| {
        for threads in [1, 2] {
            let pool = pool(threads);
            for _ in 0..threads {
                let (reader, writer) = pipe().unwrap();
                pool.spawn(move || wait_for(reader));
                pool.spawn(move || tell(writer));
            }
            pool.shutdown();
        }
    });
}

#[test]
fn all_workers_block_and_are_woken_from_outside() {
    in_both_tiers(|| {
        let pool = pool(2);
        let (mut readers, mut writers) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let (reader, writer) = pipe().unwrap();
            readers.push(reader);
            writers.push(writer);
        }
        let begun = Arc::new(AtomicUsize::new(0));
        for reader in readers {
            let begun = begun.clone();
            pool.spawn(move || {
                begun.fetch_add(1, SeqCst);
                wait_for(reader);
            });
        }
        // Nothing is ready now, and the monitor has nothing to do.
        until(|| begun.load(SeqCst) == 2);
        pool.install(move || writers.into_iter().for_each(tell));
        assert!(pool.metrics().compensations >= 1);
        // When they are back no thread is one too many.
        until(|| pool.metrics().active_spares == 0);
        pool.shutdown();
    });
}

#[test]
fn as_many_block_at_a_time_as_there_are_spares() {
    const SPARES: usize = 5;
    in_both_tiers(|| {
        let pool = builder(1).spare_threads(SPARES).build_with::<SingleLock>().unwrap();
        let mut writers = Vec::new();
        for _ in 0..SPARES {
            let (reader, writer) = pipe().unwrap();
            writers.push(writer);
            pool.spawn(move || wait_for(reader));
        }
        // Behind all of them.
        pool.spawn(move || writers.into_iter().for_each(tell));
        pool.shutdown();
    });
}

#[test]
fn a_scopes_tasks_run_while_another_of_them_blocks() {
    in_both_tiers(|| {
        let pool = pool(1);
        let (reader, writer) = pipe().unwrap();
        let done = AtomicUsize::new(0);
        pool.install(|| {
            scope(|s| {
                s.spawn(|_| tell(writer));
                s.spawn(|_| {
                    wait_for(reader);
                    done.fetch_add(1, SeqCst);
                });
                for _ in 0..50 {
                    s.spawn(|_| {
                        done.fetch_add(1, SeqCst);
                    });
                }
            });
        });
        assert_eq!(done.into_inner(), 51);
        pool.shutdown();
    });
}

#[test]
fn a_pool_whose_tasks_sleep_does_them_all_and_is_as_small_as_before() {
    in_both_tiers(|| {
        let pool = pool(2);
        let done = Arc::new(AtomicUsize::new(0));
        for number in 0..60 {
            let done = done.clone();
            pool.spawn(move || {
                if number % 3 == 0 {
                    std::thread::sleep(Duration::from_micros(500));
                }
                if number % 7 == 0 {
                    blocking(|| std::thread::sleep(Duration::from_micros(500)));
                }
                done.fetch_add(1, SeqCst);
            });
        }
        until(|| done.load(SeqCst) == 60);
        until(|| pool.metrics().active_spares == 0);
        let metrics = pool.metrics();
        assert!(metrics.brief_compensations <= metrics.compensations, "{metrics:?}");
        pool.shutdown();
    });
}

#[test]
fn a_pool_that_grows_and_shrinks_while_its_tasks_block_ends() {
    in_both_tiers(|| {
        let pool = builder(1).max_threads(3).build().unwrap();
        for threads in [3, 1, 2, 1, 3] {
            let (reader, writer) = pipe().unwrap();
            pool.spawn(move || wait_for(reader));
            pool.set_num_threads(threads).unwrap();
            pool.spawn(move || tell(writer));
        }
        drop(pool);
        // One that is dropped at once, and one that its task ends.
        drop(builder(1).build().unwrap());
        let pool = builder(2).build().unwrap();
        let (reader, writer) = pipe().unwrap();
        let inner = builder(1).build().unwrap();
        pool.spawn(move || {
            inner.spawn(move || tell(writer));
            inner.shutdown();
        });
        pool.spawn(move || {
            spawn(|| ());
            wait_for(reader);
        });
        pool.shutdown();
    });
}

/// Returns how often the monitors of this process have gone to sleep.
fn sleeps_of_monitors() -> usize {
    let mut sleeps = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        if read("comm").trim() == "monitor" {
            let status = read("status");
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            let counts =
                counts.filter_map(|line| line.split_whitespace().last()?.parse::<usize>().ok());
            sleeps += counts.sum::<usize>();
        }
    }
    sleeps
}

/// The only worker blocks in the first half of a fork, and does not say so. The second half wakes
/// it.
#[test]
fn a_first_half_that_blocks_waits_for_the_second() {
    in_both_tiers(|| {
        let pool = pool(1);
        for _ in 0..20 {
            let (send, receive) = mpsc::channel();
            let first = move || receive.recv().unwrap();
            assert_eq!(pool.join(first, move || send.send(7).unwrap()).0, 7);
        }
        pool.shutdown();
    });
}

#[test]
fn monitor_sleeps_while_nothing_is_ready() {
    in_both_tiers(|| {
        let pool = pool(2);
        let (reader, writer) = pipe().unwrap();
        // One worker idle, one blocked, nothing ready.
        pool.spawn(move || wait_for(reader));
        // A monitor that looks every few milliseconds never sleeps through fifty.
        until(|| {
            let before = sleeps_of_monitors();
            std::thread::sleep(Duration::from_millis(50));
            before == sleeps_of_monitors() && before > 0
        });
        tell(writer);
        pool.shutdown();
    });
}

#[test]
fn no_worker_is_compensated_unless_asked() {
    in_both_tiers(|| {
        let pool = ThreadPool::new(1).unwrap();
        pool.spawn(|| std::thread::sleep(Duration::from_millis(1)));
        pool.spawn(|| ());
        until(|| pool.metrics().total().tasks == 2);
        assert_eq!((pool.metrics().compensations, pool.metrics().brief_compensations), (0, 0));
        pool.shutdown();
    });
}

/// Returns how often threads of this name have given up their processors to wait.
fn waits_of(name: &str) -> u64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let status = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("status"));
    let all = threads.flatten().filter_map(|thread| status(thread).ok());
    let named = all.filter(|status| status.lines().next() == Some(&format!("Name:\t{name}")));
    let count = |status: String| -> Option<u64> {
        status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:\t"))?
            .parse()
            .ok()
    };
    named.filter_map(count).sum()
}

/// A monitor that preempts a worker sees a switch of that worker, and is woken again.
#[test]
fn monitor_seldom_wakes_while_no_worker_blocks() {
    in_both_tiers(|| {
        let threads = std::thread::available_parallelism().unwrap().get();
        let pool = builder(threads).thread_name(|index| format!("w-{index}")).build().unwrap();
        let begin = Instant::now();
        pool.scope(|s| {
            for _ in 0..40_000 * threads {
                s.spawn(|_| {
                    std::hint::black_box((0..1_000_u32).map(std::hint::black_box).sum::<u32>());
                });
            }
        });
        let (woken, millis) = (waits_of("monitor"), begin.elapsed().as_millis() as u64);
        // One in vain and one after a rest in 2 ms. A system may take a worker off its processor
        // for reasons that look like a block.
        assert!(woken < 4 * millis + 200, "{woken} times in {millis} ms");
        pool.shutdown();
    });
}
