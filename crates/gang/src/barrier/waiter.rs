//! A member of a barrier: its state, and the promise that it will arrive.
//!
//! Why not `wait(&self)` alone, as the standard library has it: most barriers must know which
//! member waits. And a member that goes away without a word leaves the others waiting for ever.
//! Here it cannot: a [`Waiter`] that is dropped breaks the barrier.

use core::ops::Deref;
use core::time::Duration;

use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::WaitPolicy;

use super::interface::{Barrier, Broken, Crossing};

/// One member of a [`Barrier`], which it reaches through `R`: a reference, or an `Arc`.
///
/// If it is dropped, it breaks the barrier for members that still wait: with [`Broken::Panicked`]
/// if its thread is panicking, else with [`Broken::Left`]. A phase that has been crossed stays
/// crossed, so a member that drops its waiter after the last phase disturbs no other. For a waiter
/// that is forgotten (`mem::forget`), the others wait for ever, or until a deadline.
///
/// ```
/// use stanchion_gang::{Waiter, barrier::{Barrier, Central}};
///
/// let barrier = Central::new(3)?;
/// std::thread::scope(|scope| {
///     for mut waiter in Waiter::all(&barrier) {
///         scope.spawn(move || {
///             for _ in 0..10 {
///                 waiter.wait().unwrap();
///             }
///         });
///     }
/// });
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
#[derive(Debug)]
pub struct Waiter<R>
where
    R: Deref<Target: Barrier>,
{
    /// The state that the member keeps from one wait to the next.
    state: <R::Target as Barrier>::MemberState,
    /// Which member it is.
    index: usize,
    /// The barrier.
    barrier: R,
}

impl<R> Waiter<R>
where
    R: Deref<Target: Barrier>,
{
    /// Returns all members, in order. To be called once for a barrier: see
    /// [`Barrier::member_state`].
    #[must_use = "a waiter that is dropped breaks the barrier"]
    pub fn all(barrier: R) -> Vec<Self>
    where
        R: Clone,
    {
        let member =
            |index| Self { state: barrier.member_state(index), index, barrier: barrier.clone() };
        (0..barrier.members()).map(member).collect()
    }

    /// Returns the index of this member.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the barrier.
    #[must_use]
    pub fn barrier(&self) -> &R::Target {
        &self.barrier
    }

    /// Waits for the others.
    ///
    /// # Errors
    ///
    /// [`Broken`] if a member will not arrive.
    pub fn wait(&mut self) -> Result<Crossing, Broken> {
        self.barrier.wait_by_default(&mut self.state, Deadline::NEVER)
    }

    /// Waits for the others, but breaks the barrier if they have not arrived within `timeout`.
    ///
    /// # Errors
    ///
    /// [`Broken`], also if another member will not arrive.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Crossing, Broken> {
        self.barrier.wait_by_default(&mut self.state, Deadline::after(timeout))
    }

    /// Waits by `policy` until `deadline`.
    ///
    /// # Errors
    ///
    /// [`Broken`], also if another member will not arrive.
    pub fn wait_with(
        &mut self,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.barrier.wait_at(&mut self.state, policy, deadline)
    }
}

impl<R> Drop for Waiter<R>
where
    R: Deref<Target: Barrier>,
{
    fn drop(&mut self) {
        let why =
            if stanchion_machine::thread::panicking() { Broken::Panicked } else { Broken::Left };
        self.barrier.break_with(why);
    }
}
