//! How a thread waits while it panics: on its stack, so that its kernel thread runs no other
//! thread.
//!
//! The standard library counts panics by kernel thread, and notes there that a panic hook runs. If
//! another thread ran on the kernel thread meanwhile, then
//!
//! - its own panic would abort the process ("thread panicked while processing panic"), if the first
//!   thread waits in the panic hook;
//! - it would read as panicking, and would poison each mutex of the standard library that it
//!   releases, if the first thread waits in a destructor.
//!
//! So a thread that panics gives its slot away, as if by [`blocking`](crate::blocking()), and
//! sleeps in the kernel until it is ready again. Nothing tells a hook from a destructor, so both
//! do.
//!
//! Why not for ever: the thread may wait for one that began on the same kernel thread, and can go
//! on nowhere else. A destructor that joins the workers of a pool does. If such a thread has been
//! ready for [`PATIENCE`], the thread that panics leaves its stack after all. Likewise if no other
//! kernel thread can be had for its slot.
//!
//! ```text
//!                                          ready: mailed to the worker, which takes it out of the mail
//! settles, as one that leaves ──► sleeps ────────────────────────────────────────────────────────────► goes on
//!                                   │ others have been ready here for PATIENCE
//!                                   ▼
//!                                 leaves its stack, as `Settled` ──► goes on like any thread
//! ```
//!
//! # Invariants
//!
//! 1. A thread that has settled and is on its stack is bound to its worker. So the thread that
//!    makes it ready hands it to this worker, which alone looks for it there.

use core::mem::ManuallyDrop;
use core::time::Duration;

use machine::clock::Deadline;

use crate::thread::fiber::Suspended;
use crate::thread::park_state::Pause;
use crate::thread::header::Thread;

use super::scheduler_loop::Worker;

/// For so long a thread that panics keeps those waiting that only its kernel thread can run.
const PATIENCE: Duration = Duration::from_secs(1);

impl Worker {
    /// The current thread, which panics, pauses or yields. Returns `None` if that is over. Else the
    /// thread leaves its stack, as the result says.
    #[cold]
    pub(crate) fn wait_in_panic(&self, left: Suspended, deadline: Deadline) -> Option<Suspended> {
        let leaves = if self.panicking.get() > 0 {
            // It may be another thread that panics. Its count is on this kernel thread already.
            Some(left)
        } else {
            self.give_slot_before_block();
            match left {
                Suspended::Paused(pause) => self.pause_in_panic(pause, deadline),
                _ if self.delay().is_some_and(Deadline::passed) => Some(left),
                _ => {
                    machine::thread::yield_now();
                    None
                }
            }
        };
        if leaves.is_some() {
            self.panicking.set(self.panicking.get() + 1);
        }
        leaves
    }

    /// A thread goes on that has left its stack while it panicked.
    pub(crate) fn goes_on_in_panic(&self) {
        self.panicking.set(self.panicking.get() - 1);
    }

    fn pause_in_panic(&self, pause: Pause, mut deadline: Deadline) -> Option<Suspended> {
        let current = self.with_current(Thread::pointer)?;
        // SAFETY: its own share is whose it was to run it.
        let current = unsafe { Thread::from_pointer(current) };
        // What is looked at from here on, while that share is with its state, or with the thread
        // when it is ready.
        // SAFETY: as above; it is not dropped.
        let running = ManuallyDrop::new(unsafe { Thread::from_pointer(current.pointer()) });
        if let Some(awake) = current.settle(pause) {
            // Its own share goes around with it.
            let _ = ManuallyDrop::new(awake);
            return None;
        }
        loop {
            let delay = self.delay();
            // Invariant 1.
            if let Some(ready) = self.local_queue.borrow_mut().take(&running) {
                let _ = ManuallyDrop::new(ready);
                return None;
            }
            if deadline.passed() {
                // From here on it is ready, or is about to be mailed by another thread.
                running.notify();
                deadline = Deadline::NEVER;
            } else if delay.is_some_and(Deadline::passed) {
                return Some(Suspended::Settled);
            } else {
                let until = delay.map_or(deadline, |delay| delay.min(deadline));
                self.worker().await_mail(until);
            }
        }
    }

    /// Returns until when the current thread may keep others waiting; `None` if it keeps none.
    fn delay(&self) -> Option<Deadline> {
        self.read_mail();
        let id = self.with_current(Thread::id)?;
        let has_slot = self.worker().ownership().is_in_thread();
        let others = !self.local_queue.borrow().has_only(id);
        let keeps_others = others || has_slot && !self.runtime.can_replace();
        let before = self.delay.get().filter(|&(whose, _)| whose == id);
        let delay = keeps_others.then(|| before.unwrap_or((id, Deadline::after(PATIENCE))));
        self.delay.set(delay);
        delay.map(|(_, until)| until)
    }
}
