//! Parking: how a thread waits for another to say that it may go on.

use core::time::Duration;

use machine::clock::Deadline;

use crate::worker::context;
use crate::thread::header as thread;

/// Waits until the calling thread is [unparked](crate::Thread::unpark), if that has not happened since the last park. A user-level thread leaves its
/// processor to others meanwhile; a kernel thread sleeps.
///
/// As with the standard library's, it may return for nothing: look again at what the thread waits for. What else waits in this crate ([`join`](crate::JoinHandle::join), [`sleep`],
/// the end of a [`scope`](crate::scope()), all of [`sync`](crate::sync)) does not use up an unpark that was meant for a park.
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
        let thread = thread::current();
        thread::sleep_in_kernel(&thread, Deadline::NEVER);
        thread.header().state().take_token();
    }
}

/// [`park`], for so long at most; whether it was unparked.
///
/// The time is watched by the workers between threads, and while they are idle, and by the monitor while one is blocked in the kernel, which is then replaced
/// as for a ready thread: a thread is late if every processor of its runtime computes meanwhile, or if the kernel thread on which it began computes or is blocked.
///
/// ```
/// use std::time::Duration;
/// use stanchion_activations::{Runtime, park_timeout};
///
/// let runtime = Runtime::new(1)?;
/// assert!(!runtime.run(|| park_timeout(Duration::from_millis(1))), "nobody unparks it");
/// let parked = runtime.spawn(|| park_timeout(Duration::from_secs(3_600)));
/// parked.thread().unpark();
/// assert!(parked.join().unwrap());
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub fn park_timeout(timeout: Duration) -> bool {
    park_until(Deadline::after(timeout))
}

/// [`park`] until a deadline; whether the thread was unparked.
pub(crate) fn park_until(deadline: Deadline) -> bool {
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
            // A park lets others run, also if its time is short.
            context::yield_thread();
        }
        has_paused = true;
    }
}

/// Puts the calling thread to sleep for the given time at least, and leaves its processor to others meanwhile; a kernel thread sleeps in the kernel.
/// Unparks that come in are kept for the next [`park`]. A time of zero [yields](crate::yield_now).
///
/// Costs two operations in O(log n) under the lock of the runtime's n times, and two switches. How late it can be: see [`park_timeout`].
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
        crate::yield_now();
        return;
    }
    wait_until(Deadline::after(time), || false);
}

/// Waits until `is_over`, or the deadline; whether it is over. Who makes it so calls the thread afterwards. Tokens are kept.
pub(crate) fn wait_until(deadline: Deadline, mut is_over: impl FnMut() -> bool) -> bool {
    if is_over() {
        return true;
    }
    let mut owed = false;
    let over = loop {
        // Before the look: who calls after it is not forgotten.
        owed |= take_token();
        if is_over() {
            break true;
        }
        if deadline.passed() {
            break false;
        }
        pause(deadline);
    };
    if owed {
        thread::with_current(|thread| thread.header().state().put_token());
    }
    over
}

/// Takes the calling thread's token. Without a share of its handle, which costs more than the rest.
fn take_token() -> bool {
    thread::with_current(|thread| thread.header().state().take_token())
}

/// Pauses the calling thread until it is unparked or called or the deadline has passed; or for nothing.
fn pause(deadline: Deadline) {
    if !context::pause_thread(deadline) {
        thread::with_current(|thread| thread::sleep_in_kernel(thread, deadline));
    }
}
