//! Does something once in a process, and not again in its forked children.
//!
//! Why not `OnceLock`: a fork while one thread does it would lock it for ever in the child, which
//! has no such thread. The child begins again here, so what is done must bear that.
//!
//! | `state` | meaning | next |
//! | --- | --- | --- |
//! | `NOT_YET` | not done | this process's generation |
//! | a generation | a thread of that process does it | `DONE`, or `NOT_YET` if it fails |
//! | another process's generation | it was begun before a fork | this process's generation |
//! | `DONE` | done here, or in a process that this one was forked from | |

use core::sync::atomic::{AtomicU32, Ordering};

use crate::fork::generation;
use crate::wait::{Patient, WaitPolicy, wait_until};

/// No generation: they begin with 1.
const NOT_YET: u32 = 0;
/// No generation: there are fewer forks.
const DONE: u32 = u32::MAX;

pub(super) struct Once {
    /// The table above has its values.
    state: AtomicU32,
}

impl Once {
    pub(super) const fn new() -> Self {
        Self { state: AtomicU32::new(NOT_YET) }
    }

    /// Does `body`, unless that was done. Waits for a thread that does it now. `body` must not
    /// panic: other threads would wait for ever.
    pub(super) fn run<E>(&self, body: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let here = generation();
        loop {
            // Acquire: pairs with the Release below, which says how `body` ended.
            let state = self.state.load(Ordering::Acquire);
            if state == DONE {
                return Ok(());
            }
            if state == here {
                let ended = |state| state != here;
                // Acquire: as above.
                wait_until(&self.state, Ordering::Acquire, ended, &mut <Patient>::start());
                continue;
            }
            // Acquire: what an attempt that failed has done comes first.
            let mine =
                self.state.compare_exchange(state, here, Ordering::Acquire, Ordering::Relaxed);
            if mine.is_ok() {
                let result = body();
                let next = if result.is_ok() { DONE } else { NOT_YET };
                // Release: pairs with the Acquire of a thread that looks or waits.
                self.state.store(next, Ordering::Release);
                return result;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn it_is_done_once_and_again_after_an_error() {
        let once = Once::new();
        let calls = Cell::new(0);
        let call = |result| {
            move |calls: &Cell<u32>| {
                calls.set(calls.get() + 1);
                result
            }
        };
        assert_eq!(once.run(|| call(Err(1))(&calls)), Err(1));
        assert_eq!(once.run(|| call(Ok(()))(&calls)), Ok(()));
        assert_eq!(once.run(|| call(Err(2))(&calls)), Ok(()));
        assert_eq!(calls.get(), 2);
    }

    #[test]
    fn a_second_thread_does_not_do_it_too() {
        let once = &Once::new();
        let (begun, begins) = channel();
        let (go, goes) = channel();
        let (first, second) = thread::scope(|scope| {
            let first = scope.spawn(move || {
                once.run(|| {
                    begun.send(()).unwrap();
                    goes.recv()
                })
            });
            begins.recv().unwrap();
            let second = scope.spawn(|| once.run::<()>(|| panic!("the first thread does it")));
            go.send(()).unwrap();
            (first.join().unwrap(), second.join().unwrap())
        });
        assert_eq!(first, Ok(()));
        assert_eq!(second, Ok(()));
    }

    #[test]
    fn what_a_fork_has_cut_short_is_done_again() {
        let once = Once::new();
        // As in a child that was forked while a thread of the parent did it.
        once.state.store(generation() + 1, Ordering::Relaxed);
        let mut done = false;
        let result: Result<(), ()> = once.run(|| {
            done = true;
            Ok(())
        });
        assert_eq!((result, done), (Ok(()), true));
    }
}
