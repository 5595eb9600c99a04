//! A program that waits by the locks of Rust, for the tests of the shim: `waits WHAT`.
//!
//! Each of its waits lasts some milliseconds, but those of `often`: two threads wake each other as
//! often as they can. It prints `ok` at its end.

use std::hint::black_box;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex, OnceLock, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use asleep::sleeps;

#[cfg(target_os = "linux")]
mod asleep;
#[cfg(target_os = "linux")]
#[path = "hostile/filter.rs"]
mod filter;
#[cfg(target_os = "linux")]
#[path = "waits/several.rs"]
mod several;

/// The number of waits of each kind.
const TIMES: usize = 5;

/// The least time of a wait.
const REST: Duration = Duration::from_millis(10);

/// Calls `hold` while another thread waits in `wait`, several times.
fn each(wait: impl Fn() + Sync, hold: impl Fn(&dyn Fn())) {
    for _ in 0..TIMES {
        let waiter = AtomicI32::new(0);
        thread::scope(|scope| {
            hold(&|| {
                scope.spawn(|| {
                    waiter.store(number_of_thread(), Ordering::SeqCst);
                    wait();
                });
                while !matches!(waiter.load(Ordering::SeqCst), waiter if waiter != 0 && sleeps(waiter))
                {
                    thread::sleep(Duration::from_millis(1));
                }
                thread::sleep(REST);
            });
        });
    }
}

/// Returns the system's number of the calling thread.
#[cfg(target_os = "linux")]
fn number_of_thread() -> i32 {
    // SAFETY: asks for a number.
    unsafe { libc::gettid() }
}

/// Returns the time after `time` from now on `clock`.
#[cfg(target_os = "linux")]
fn linux_time(clock: libc::clockid_t, time: Duration) -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `now`.
    unsafe { libc::clock_gettime(clock, &mut now) };
    let nanos = now.tv_nsec + i64::from(time.subsec_nanos());
    libc::timespec {
        tv_sec: now.tv_sec + time.as_secs() as i64 + nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    }
}

/// Returns a number that stands for the calling thread.
#[cfg(not(target_os = "linux"))]
fn number_of_thread() -> i32 {
    1
}

/// Returns true: a rest will do.
#[cfg(not(target_os = "linux"))]
fn sleeps(_: i32) -> bool {
    true
}

#[inline(never)]
fn take_mutex(mutex: &Mutex<u64>) {
    *mutex.lock().unwrap() += 1;
}

#[inline(never)]
fn write_table(table: &RwLock<u64>) {
    *table.write().unwrap() += 1;
}

#[inline(never)]
fn take_parking_lot(mutex: &parking_lot::Mutex<u64>) {
    *mutex.lock() += 1;
}

#[inline(never)]
fn wait_for_flag(flag: &Mutex<bool>, changed: &Condvar) {
    let mut flag = flag.lock().unwrap();
    while !*flag {
        flag = changed.wait(flag).unwrap();
    }
    *flag = false;
}

#[inline(never)]
fn receive(values: &mpsc::Receiver<u64>) {
    values.recv().unwrap();
}

#[inline(never)]
fn rest() {
    thread::park_timeout(REST);
}

/// Waits very often: two threads wake each other in turn, after a computation of some microseconds.
fn often(waits: u32) {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let take_turns = move |me: u32, other: &thread::Thread| {
        for turn in (me..waits).step_by(2) {
            while TURN.load(Ordering::Acquire) != turn {
                thread::park();
            }
            let mut number = u64::from(turn);
            for _ in 0..3_000 {
                number = black_box(number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7));
            }
            TURN.store(turn + 1, Ordering::Release);
            other.unpark();
        }
    };
    let first = thread::current();
    let second = thread::spawn(move || take_turns(1, &first));
    take_turns(0, second.thread());
    second.join().unwrap();
}

/// The length of a planned wait.
const PLANNED: Duration = Duration::from_millis(50);

/// Waits for a known time in each way. Prints the way, then the nanoseconds from the beginning of
/// the waits until the calls that ended them.
fn planned() {
    fn one(way: &str, wait: impl Fn() + Sync, hold: impl Fn(&dyn Fn())) {
        let total = AtomicU64::new(0);
        for _ in 0..TIMES {
            let began = OnceLock::new();
            thread::scope(|scope| {
                hold(&|| {
                    scope.spawn(|| {
                        began.get_or_init(Instant::now);
                        wait();
                    });
                    while began.get().is_none() {
                        thread::yield_now();
                    }
                    thread::sleep(PLANNED);
                    total.fetch_add(
                        began.get().unwrap().elapsed().as_nanos() as u64,
                        Ordering::Relaxed,
                    );
                });
            });
        }
        println!("{way} {}", total.into_inner());
    }
    let mutex = Mutex::new(0);
    one(
        "lock",
        || take_mutex(&mutex),
        |body| {
            let _held = mutex.lock();
            body();
        },
    );
    let (flag, changed) = (Mutex::new(false), Condvar::new());
    one(
        "condition",
        || wait_for_flag(&flag, &changed),
        |body| {
            body();
            *flag.lock().unwrap() = true;
            changed.notify_all();
        },
    );
    let (send, values) = mpsc::channel();
    let values = Mutex::new(values);
    one(
        "park",
        || receive(&values.lock().unwrap()),
        |body| {
            body();
            send.send(1).unwrap();
        },
    );
    let began = Instant::now();
    (0..TIMES).for_each(|_| thread::spawn(|| thread::sleep(PLANNED)).join().unwrap());
    println!("join {}", began.elapsed().as_nanos());
}

fn main() {
    #[cfg(target_os = "linux")]
    filter::refuse_by_variable();
    match std::env::args().nth(1).as_deref() {
        Some("all") => {
            let mutex = Mutex::new(0);
            each(
                || take_mutex(&mutex),
                |body| {
                    let _held = mutex.lock();
                    body();
                },
            );
            let table = RwLock::new(0);
            each(
                || write_table(&table),
                |body| {
                    let _held = table.read();
                    body();
                },
            );
            let lot = parking_lot::Mutex::new(0);
            each(
                || take_parking_lot(&lot),
                |body| {
                    let _held = lot.lock();
                    body();
                },
            );
            let (flag, changed) = (Mutex::new(false), Condvar::new());
            each(
                || wait_for_flag(&flag, &changed),
                |body| {
                    body();
                    *flag.lock().unwrap() = true;
                    changed.notify_all();
                },
            );
            let (send, values) = mpsc::channel();
            let values = Mutex::new(values);
            each(
                || receive(&values.lock().unwrap()),
                |body| {
                    body();
                    send.send(1).unwrap();
                },
            );
            (0..TIMES).for_each(|_| rest());
        }
        Some("often") => {
            let waits = std::env::args().nth(2).map_or(100_000, |waits| waits.parse().unwrap());
            often(waits);
        }
        Some("planned") => planned(),
        #[cfg(target_os = "linux")]
        Some("several") => several::several(),
        Some("rest") => (0..TIMES).for_each(|_| rest()),
        // A child of a fork by `Command` is one of `vfork` or `clone` in the C library.
        Some("children") => {
            let both = Barrier::new(2);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        both.wait();
                        let done = std::process::Command::new("true").status();
                        assert!(done.is_ok_and(|status| status.success()));
                    });
                }
            });
        }
        // Calls that are not of `futex`, one with six arguments and one that fails.
        Some("calls") => {
            #[cfg(target_os = "linux")]
            calls();
        }
        other => panic!("unknown: {other:?}"),
    }
    println!("ok");
}

#[cfg(target_os = "linux")]
fn calls() {
    // SAFETY: asks for a number.
    let process = unsafe { libc::syscall(libc::SYS_getpid) };
    assert_eq!(process, i64::from(std::process::id()));
    // SAFETY: new memory, anywhere.
    let memory = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            0,
            4096_usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    let word = memory as *mut u32;
    // SAFETY: the memory is this function's.
    unsafe { *word = 7 };
    // SAFETY: the word is there; it has another value, so the call does not wait.
    let result = unsafe {
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT_BITSET, 8, 0_usize, 0_usize, 1)
    };
    let error = std::io::Error::last_os_error().raw_os_error();
    assert_eq!((result, error), (-1, Some(libc::EAGAIN)));
    // SAFETY: not a file.
    let result = unsafe { libc::syscall(libc::SYS_close, -1) };
    let error = std::io::Error::last_os_error().raw_os_error();
    assert_eq!((result, error), (-1, Some(libc::EBADF)));
    // A child by the system call itself returns from the call too, on a copy of the stack.
    let none = 0_usize;
    // SAFETY: the child calls nothing but `_exit`.
    let child =
        unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD as usize, none, none, none, none) };
    if child == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(3) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was made above.
    let ended = unsafe { libc::waitpid(child as libc::pid_t, &mut status, 0) };
    assert_eq!(i64::from(ended), child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 3);
}
