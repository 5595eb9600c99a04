//! Park and unpark, sleep and yield: the waits that a user calls by name.

use core::time::Duration;

use stanchion_machine::clock::Deadline;

use crate::thread::handle::Thread;
use crate::thread::park_state::WakeReason;
use crate::worker::context;
use crate::worker::wait::{pause, take_token, wait_until};

impl Thread {
    /// Makes the thread's next [`park`](crate::park()) return, or its present one. Several unparks
    /// before that count as one.
    ///
    /// If the runtime has threads of different priorities, threads of a higher priority may run
    /// before this returns.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(1)?;
    /// let parked = runtime.spawn(|| stanchion_activations::park());
    /// parked.thread().unpark();
    /// parked.join().unwrap();
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn unpark(&self) {
        self.wake_for(WakeReason::Unpark);
        context::give_way();
    }
}

/// Waits until the calling thread is [unparked](crate::Thread::unpark), unless that has happened
/// since the last park. A user-level thread leaves its processor to others meanwhile. A kernel
/// thread sleeps.
///
/// As with the standard library's, it may return early: look again at the condition for which the
/// thread waits. The other waits of this crate ([`join`](crate::JoinHandle::join), [`sleep`], the
/// end of a [`scope`](crate::scope()), all of [`sync`](crate::sync)) do not use up an unpark that
/// was meant for a park.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// let parked = runtime.spawn(stanchion_activations::park);
/// parked.thread().unpark();
/// parked.join().unwrap();
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub fn park() {
    if context::park_thread().is_none() {
        let thread = context::current();
        thread.header().park_state().sleep(Deadline::NEVER);
        thread.header().park_state().take_token();
    }
}

/// Waits as [`park`] does, but no longer than for `timeout`. Returns whether the thread was
/// unparked.
///
/// The workers watch the time between threads, and while they are idle. While a worker is blocked
/// in the kernel, the monitor watches it, and another worker takes over as for a ready thread. So
/// a thread is late only if every processor of its runtime computes meanwhile, or if the kernel
/// thread on which it began computes or is blocked.
///
/// ```
/// use std::time::Duration;
/// use stanchion_activations::{Runtime, park_timeout};
///
/// let runtime = Runtime::new(1)?;
/// assert!(!runtime.run(|| park_timeout(Duration::from_millis(1))), "it is not unparked");
/// let parked = runtime.spawn(|| park_timeout(Duration::from_secs(3_600)));
/// parked.thread().unpark();
/// assert!(parked.join().unwrap());
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub fn park_timeout(timeout: Duration) -> bool {
    let deadline = Deadline::after(timeout);
    if deadline == Deadline::NEVER {
        park();
        return true;
    }
    let mut has_paused = false;
    loop {
        if take_token() {
            return true;
        }
        if !deadline.passed() {
            pause(deadline);
        } else if has_paused {
            return false;
        } else {
            // A park lets others run, even if its time is short.
            context::yield_thread();
        }
        has_paused = true;
    }
}

/// Puts the calling thread to sleep for the given time at least. A user-level thread leaves its
/// processor to others meanwhile. A kernel thread sleeps in the kernel. Unparks that come meanwhile
/// are kept for the next [`park`]. A time of zero [yields](crate::yield_now).
///
/// It costs two operations in O(log n) under the lock of the runtime's n timers, and two switches.
/// [`park_timeout`] says how late it can be.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// let started = Instant::now();
/// let sleepers: Vec<_> = (0..100)
///     .map(|_| runtime.spawn(|| stanchion_activations::sleep(Duration::from_millis(5))))
///     .collect();
/// sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
/// assert!(started.elapsed() >= Duration::from_millis(5), "all at the same time");
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub fn sleep(time: Duration) {
    if time.is_zero() {
        yield_now();
        return;
    }
    wait_until(Deadline::after(time), || false);
}

/// Lets other ready threads run first. Outside a runtime, yields the processor to other kernel
/// threads.
///
/// Returns when all begun threads that were ready on this processor have had a turn, and a new
/// thread after each turn that ends in a yield; at least one new thread, if no begun one is ready.
/// The documentation of [`Runtime`](crate::Runtime#order) states the order of all ready threads.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// runtime.run(stanchion_activations::yield_now);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub fn yield_now() {
    if !context::yield_thread() {
        stanchion_machine::thread::yield_now();
    }
}
