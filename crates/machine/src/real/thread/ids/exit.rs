//! Calls back when a thread ends, after its other destructors: a key of POSIX threads.
//!
//! Why not a thread-local with a destructor: its registration allocates (glibc's
//! `__cxa_thread_atexit_impl` calls `calloc`), and the numbers are needed by locks that guard
//! allocators. Its destructor also runs in the midst of the others, so a guard in a thread-local
//! that is destroyed later would outlive its thread's number.
//!
//! A key's destructor runs after the destructors of all thread-locals. The system goes over the
//! keys in several rounds, for as long as a destructor sets a value again. This one does so until
//! the last round but one that POSIX guarantees. In the last round ThreadSanitizer ends its own
//! record of the thread, and code that is instrumented must not run after that. The value has the
//! thread's number, because some systems end thread-locals by a key of their own, and counts the
//! rounds:
//!
//! ```text
//! asked   thread-locals end    round 1   round 2   round 3           round 4
//!   1                           1 -> 2    2 -> 3    3: thread_ends    sanitizers
//! ```
//!
//! What is left: a thread that first asks from the destructor of a key, in a late round, may see
//! the rounds end too early. Its number is then lost to the process.
//!
//! # Allocation
//!
//! `pthread_setspecific` allocates nothing in musl and in Apple's library. In glibc it allocates
//! nothing for the first 32 keys of the process, so the key is made when the program is loaded,
//! which takes 100 ns and no memory. What is left: a plug-in that is loaded into a process which
//! has made 32 keys by then. There the first call of each thread calls `calloc`. Even a lock that
//! guards the allocator comes through that: the thread has no number meanwhile, and does not yet
//! try for the lock that made it ask.
//!
//! # Invariants
//!
//! 1. `KEY` is changed from [`NONE`] at most once, and to [`GONE`] at most once.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The key plus [`FIRST`], or one of the two below.
static KEY: AtomicUsize = AtomicUsize::new(NONE);
/// It has not been made yet.
const NONE: usize = 0;
/// The library is being unloaded, or the process ends.
const GONE: usize = 1;
const FIRST: usize = 2;

/// The rounds that POSIX guarantees (`_POSIX_THREAD_DESTRUCTOR_ITERATIONS`) but the last one. Below
/// [`ROUND_LIMIT`].
const ROUNDS: usize = 3;

/// Arranges that [`super::thread_ends`] is called when the calling thread ends. Fails if the
/// process has no key left, or is ending.
pub(super) fn call_when_thread_ends() -> bool {
    key().is_some_and(|key| set(key, None, 1))
}

/// Keeps the calling thread's number until the thread ends.
pub(super) fn keep(index: usize) {
    if let Some(key) = key() {
        set(key, Some(index), get(key) % ROUND_LIMIT);
    }
}

/// Returns the number that the calling thread keeps.
pub(super) fn kept() -> Option<usize> {
    key().and_then(|key| index_in(get(key)))
}

fn key() -> Option<libc::pthread_key_t> {
    // Relaxed: the key is all there is to see.
    match KEY.load(Ordering::Relaxed) {
        NONE => make(),
        GONE => None,
        key => Some((key - FIRST) as libc::pthread_key_t),
    }
}

#[cold]
fn make() -> Option<libc::pthread_key_t> {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is writable, and the destructor is a function of the type asked for. It stays
    // in memory for as long as the key is there: see `forget_key`.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(next_round)) } != 0 {
        return None;
    }
    let mine = key as usize + FIRST;
    // Relaxed, both: as in `key`.
    match KEY.compare_exchange(NONE, mine, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Some(key),
        Err(_) => {
            // Another thread was first (Invariant 1).
            // SAFETY: made above, and not set by any thread.
            unsafe { libc::pthread_key_delete(key) };
            self::key()
        }
    }
}

/// The value is the round, and this times the number and 1; 0 times it without a number.
const ROUND_LIMIT: usize = 4;

fn index_in(value: usize) -> Option<usize> {
    (value / ROUND_LIMIT).checked_sub(1)
}

fn set(key: libc::pthread_key_t, index: Option<usize>, round: usize) -> bool {
    let value = index.map_or(0, |index| index + 1) * ROUND_LIMIT + round;
    // SAFETY: the value is a number to its readers, `get` and `next_round`.
    unsafe { libc::pthread_setspecific(key, ptr::without_provenance::<c_void>(value)) == 0 }
}

fn get(key: libc::pthread_key_t) -> usize {
    // SAFETY: the key has been made, and not deleted while this code is there.
    unsafe { libc::pthread_getspecific(key) }.addr()
}

/// The key's destructor: the system calls it once in each round, with the value that was set.
unsafe extern "C" fn next_round(value: *mut c_void) {
    let (index, round) = (index_in(value.addr()), value.addr() % ROUND_LIMIT);
    if round < ROUNDS && key().is_some_and(|key| set(key, index, round + 1)) {
        return;
    }
    super::thread_ends(index);
}

/// Deletes the key when this code is unloaded with the plug-in that it is part of: a thread that
/// ends later would call a destructor that is not there any more. Also runs when the process
/// exits. Threads that still run then can be numbered no more.
#[cfg(all(any(target_os = "linux", target_os = "android", target_os = "freebsd"), not(miri)))]
extern "C" fn forget_key() {
    // Relaxed: as in `key`.
    let key = KEY.swap(GONE, Ordering::Relaxed);
    if key >= FIRST {
        // SAFETY: made by `make`. Threads that ended before have been called back; no thread may
        // run this code while it is unloaded.
        unsafe { libc::pthread_key_delete((key - FIRST) as libc::pthread_key_t) };
    }
}

/// Makes the key when this code is loaded: see above.
#[cfg(all(any(target_os = "linux", target_os = "android", target_os = "freebsd"), not(miri)))]
extern "C" fn make_key() {
    // Where it fails, the first thread that asks tries again.
    let _ = key();
}

#[cfg(all(any(target_os = "linux", target_os = "android", target_os = "freebsd"), not(miri)))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOADING: extern "C" fn() = make_key;

#[cfg(all(any(target_os = "linux", target_os = "android", target_os = "freebsd"), not(miri)))]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_UNLOADING: extern "C" fn() = forget_key;

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::forget_key;
    use crate::thread::index;
    use core::sync::atomic::Ordering;
    use std::process::Command;
    use std::string::String;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_ends_after_unloading_is_not_called_back() {
        const NAME: &str = concat!(
            "backend::thread::ids::exit::tests::",
            "a_thread_that_ends_after_unloading_is_not_called_back"
        );
        const CHILD: &str = "STANCHION_UNLOADED";
        if std::env::var_os(CHILD).is_none() {
            let program = std::env::current_exe().unwrap();
            let output = Command::new(program).args(["--exact", NAME]).env(CHILD, "1").output();
            let output = output.unwrap();
            let ran = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && ran.contains("1 passed"), "{output:?}");
            return;
        }
        let ((told, tells), (go, goes)) = (channel(), channel::<()>());
        let thread = std::thread::spawn(move || {
            told.send(index().unwrap()).unwrap();
            goes.recv().unwrap();
        });
        let number = tells.recv().unwrap();
        // As the loader does before it takes the code away.
        forget_key();
        go.send(()).unwrap();
        thread.join().unwrap();
        let word = super::super::NUMBERS.0[number / 64].load(Ordering::Relaxed);
        assert_ne!(word & 1 << (number % 64), 0, "called back");
        assert_eq!(std::thread::spawn(index).join().unwrap(), None);
    }
}
