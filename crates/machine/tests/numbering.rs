//! Tests that numbering a thread calls no allocator, neither Rust's nor the C library's, and that a
//! thread keeps its number until its last destructors.
#![cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use stanchion_machine::thread::index;

thread_local! {
    /// The number of times that the thread has allocated.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
}

/// Counts a call of the C library's `malloc`: the library itself and Rust's allocator call this
/// function.
#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    ASKED.set(ASKED.get() + 1);
    // SAFETY: calls the function that this one replaces.
    unsafe { __libc_malloc(size) }
}

/// Counts a call of `calloc`, as [`malloc`] does.
#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    ASKED.set(ASKED.get() + 1);
    // SAFETY: calls the function that this one replaces.
    unsafe { __libc_calloc(count, size) }
}

/// Makes more keys than glibc has room for in a thread, so that the key of the numbers must be
/// older than these.
fn make_keys() {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        for _ in 0..40 {
            let mut key = 0;
            // SAFETY: `key` is writable, and there is no destructor.
            assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, None) }, 0);
        }
    });
}

/// Held by each test, because a thread's number depends on those of the other threads.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn the_first_number_of_a_thread_takes_no_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    make_keys();
    let before = ASKED.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ASKED.get(), before + 1, "allocations are counted");
    for _ in 0..3 {
        let asked = thread::spawn(|| {
            let before = ASKED.get();
            assert!(index().is_some());
            ASKED.get() - before
        });
        assert_eq!(asked.join().unwrap(), 0);
    }
}

/// The number that the destructor of the key below has seen in each round, plus 1, or 0 for none.
static SEEN: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
static ROUND: AtomicUsize = AtomicUsize::new(0);
static KEY: AtomicUsize = AtomicUsize::new(0);

/// Stores the number of this round, and sets the key's value again, so that it runs in each round.
unsafe extern "C" fn look(value: *mut c_void) {
    let round = ROUND.fetch_add(1, Relaxed);
    if let Some(seen) = SEEN.get(round) {
        seen.store(index().map_or(0, |index| index + 1), Relaxed);
    }
    // SAFETY: the key exists; the value is not null, and never dereferenced.
    unsafe { libc::pthread_setspecific(KEY.load(Relaxed) as libc::pthread_key_t, value) };
}

#[test]
fn a_number_is_kept_through_the_destructors_of_keys() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    make_keys();
    let mut key = 0;
    // SAFETY: `key` is writable, and the destructor stays in memory.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(look)) }, 0);
    KEY.store(key as usize, Relaxed);
    let mine = thread::spawn(move || {
        // SAFETY: as above.
        unsafe { libc::pthread_setspecific(key, (&raw const KEY).cast()) };
        index().unwrap()
    });
    let mine = mine.join().unwrap();
    let seen = SEEN.each_ref().map(|seen| seen.load(Relaxed));
    // In the last round but one the result depends on which of the two keys is older. The last
    // round is the sanitizers'.
    assert_eq!(seen[..2], [mine + 1; 2]);
    assert!([0, mine + 1].contains(&seen[2]), "{seen:?}");
    assert_eq!(seen[3], 0, "{seen:?}");
    // The number is given back, and the next thread gets the smallest number that is free.
    let next = thread::spawn(|| index().unwrap()).join().unwrap();
    assert!(next <= mine, "{next} and not {mine}");
}
