//! Waiting while panicking: the thread stays on its stack, so that its kernel thread runs no other
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
//! sleeps in the kernel until it is ready again. A hook and a destructor cannot be told apart, so
//! both do.
//!
//! Why not for ever: the thread may wait for one that began on the same kernel thread, and can go
//! on nowhere else. A destructor that joins the workers of a pool does. If such a thread has been
//! ready for [`LIMIT`], the thread that panics leaves its stack after all. It does the same if no
//! other kernel thread can be had for its slot.
//!
//! ```text
//!                                     ready: sent to the worker, which takes it from the mailbox
//! settles, as one that leaves ──► sleeps ──────────────────────────────────────────► continues
//!                                   │ others have been ready here for LIMIT
//!                                   ▼
//!                                 leaves its stack, as `Settled` ──► continues like any thread
//! ```
//!
//! # Invariants
//!
//! 1. A thread that has settled and is on its stack is bound to its worker. So the thread that
//!    makes it ready sends it to this worker, which alone looks for it in its queue.

use core::mem::ManuallyDrop;
use core::time::Duration;

use stanchion_machine::clock::Deadline;

use super::state::Worker;
use crate::thread::fiber::Suspended;
use crate::thread::handle::Thread;
use crate::thread::park_state::Pause;

/// The time for which a thread that panics keeps threads waiting that only its kernel thread can
/// run.
const LIMIT: Duration = Duration::from_secs(1);

impl Worker {
    /// Pauses or yields the current thread, which panics. Returns `None` if that is over. Otherwise
    /// the thread leaves its stack for the reason that this returns.
    #[cold]
    pub(super) fn wait_in_panic(&self, reason: Suspended, deadline: Deadline) -> Option<Suspended> {
        let leaves = if self.panicking.get() > 0 {
            // Another thread may be the one that panics. Its count is on this kernel thread
            // already.
            Some(reason)
        } else {
            self.give_slot_before_block();
            match reason {
                Suspended::Paused(pause) => self.pause_in_panic(pause, deadline),
                // It yields, and has kept others waiting for long enough.
                _ if self.update_limit().is_some_and(Deadline::passed) => Some(reason),
                _ => {
                    stanchion_machine::thread::yield_now();
                    None
                }
            }
        };
        if leaves.is_some() {
            self.panicking.set(self.panicking.get() + 1);
        }
        leaves
    }

    /// Counts a thread that continues, and that has left its stack while it panicked.
    pub(super) fn continues_in_panic(&self) {
        self.panicking.set(self.panicking.get() - 1);
    }

    fn pause_in_panic(&self, pause: Pause, mut deadline: Deadline) -> Option<Suspended> {
        let current = self.with_current(Thread::pointer)?;
        // SAFETY: the own reference belongs to the worker that runs the thread.
        let current = unsafe { Thread::from_pointer(current) };
        // The handle for the time in which the own reference is with the thread's state, or with
        // the thread when it is ready. SAFETY: as above; it is not dropped.
        let running = ManuallyDrop::new(unsafe { Thread::from_pointer(current.pointer()) });
        // A wake-up has come already.
        if let Some(awake) = current.settle(pause) {
            // The own reference travels with the thread.
            let _ = ManuallyDrop::new(awake);
            return None;
        }
        loop {
            let limit = self.update_limit();
            // The thread is ready (Invariant 1).
            if let Some(ready) = self.local_queue.borrow_mut().take(&running) {
                let _ = ManuallyDrop::new(ready);
                return None;
            }
            if deadline.passed() {
                // From here on it is ready, or another thread is about to send it.
                running.notify();
                deadline = Deadline::NEVER;
            } else if limit.is_some_and(Deadline::passed) {
                // It has kept others waiting for long enough.
                return Some(Suspended::Settled);
            } else {
                let until = limit.map_or(deadline, |limit| limit.min(deadline));
                self.record().mailbox.wait(until);
            }
        }
    }

    /// Returns the time until which the current thread may keep others waiting; `None` if it keeps
    /// none.
    fn update_limit(&self) -> Option<Deadline> {
        self.read_mailbox();
        let id = self.with_current(Thread::id)?;
        let has_slot = self.record().ownership().is_in_thread();
        let has_others = !self.local_queue.borrow().has_only(id);
        let keeps_others = has_others || has_slot && !self.runtime.can_replace();
        let before = self.panic_limit.get().filter(|&(thread, _)| thread == id);
        let limit = keeps_others.then(|| before.unwrap_or((id, Deadline::after(LIMIT))));
        self.panic_limit.set(limit);
        limit.map(|(_, until)| until)
    }
}
