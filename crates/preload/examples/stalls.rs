//! A program with threads that hang or wait for long, for tests of `stanchion stalls`:
//! `stalls WHAT`.
//!
//! It prints `waiting` once its threads are about to wait, and ends with its standard input.

#[cfg(target_os = "linux")]
use std::cell::UnsafeCell;
use std::io::Read as _;
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;

/// Two locks that two threads take in opposite order.
static LOCKS: [Mutex<u32>; 2] = [Mutex::new(0), Mutex::new(0)];
/// A condition that never comes.
static NEVER: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

#[inline(never)]
fn lock_second(first: usize, both: &Barrier) {
    let held = LOCKS[first].lock().unwrap();
    both.wait();
    *LOCKS[1 - first].lock().unwrap() += *held;
}

#[inline(never)]
fn wait_for_ever() {
    let held = NEVER.0.lock().unwrap();
    let _held = NEVER.1.wait_while(held, |_| true);
}

fn named(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    drop(thread.expect("there is room for a thread"));
}

/// Starts two threads that wait for each other's lock.
fn deadlock() {
    static BOTH: Barrier = Barrier::new(2);
    named("first", || lock_second(0, &BOTH));
    named("second", || lock_second(1, &BOTH));
}

/// A mutex of the C library that the main thread holds for good.
#[cfg(target_os = "linux")]
static MUTEX: Pthread<libc::pthread_mutex_t> =
    Pthread(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
/// A condition of the C library that never comes.
#[cfg(target_os = "linux")]
static COND: Pthread<libc::pthread_cond_t> =
    Pthread(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));
/// The mutex of the condition.
#[cfg(target_os = "linux")]
static WITH: Pthread<libc::pthread_mutex_t> =
    Pthread(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

/// An object of the C library.
#[cfg(target_os = "linux")]
struct Pthread<T>(UnsafeCell<T>);

// SAFETY: only the C library uses it, which is made for several threads.
#[cfg(target_os = "linux")]
unsafe impl<T> Sync for Pthread<T> {}

/// Starts a thread that waits for a pthread mutex, and one that waits for a pthread condition.
#[cfg(target_os = "linux")]
fn pthreads() {
    fn lock(mutex: &'static Pthread<libc::pthread_mutex_t>) {
        // SAFETY: an initialized mutex that stays.
        unsafe { libc::pthread_mutex_lock(mutex.0.get()) };
    }
    lock(&MUTEX);
    named("mutex", || lock(&MUTEX));
    named("condition", || {
        lock(&WITH);
        loop {
            // SAFETY: an initialized condition that stays; the thread holds the mutex.
            unsafe { libc::pthread_cond_wait(COND.0.get(), WITH.0.get()) };
        }
    });
}

/// Forks, and starts threads that wait in the child. The parent's threads wait already.
#[cfg(target_os = "linux")]
fn fork() {
    named("parent", wait_for_ever);
    // SAFETY: the child allocates, which the C library allows after a fork.
    if unsafe { libc::fork() } == 0 {
        static OTHER: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
        named("child", || {
            let held = OTHER.0.lock().unwrap();
            let _held = OTHER.1.wait_while(held, |_| true);
        });
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("deadlock") => deadlock(),
        Some("condition") => named("waits", wait_for_ever),
        #[cfg(target_os = "linux")]
        Some("pthreads") => pthreads(),
        #[cfg(target_os = "linux")]
        Some("fork") => fork(),
        other => panic!("unknown: {other:?}"),
    }
    named("computes", || {
        loop {
            std::hint::spin_loop();
        }
    });
    println!("waiting");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
