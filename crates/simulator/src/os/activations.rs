//! Scheduler activations: address spaces that learn which processors they have, and what becomes of
//! their threads in the kernel.
//!
//! An address space ([`Space`]) has a handler. Each event is an [`Upcall`], given to the handler on
//! a *new activation*, a thread of the run that the kernel has just made, on the processor
//! concerned. The handler is the program's own scheduler. It may do anything with that processor,
//! and returns what goes on there.
//!
//! - [`AddProcessor`](Upcall::AddProcessor) runs the handler on the new processor. The space learns
//!   that it may run one more thread.
//! - [`Blocked`](Upcall::Blocked) runs the handler where the thread was that has blocked. The space
//!   learns that this activation uses no processor any more.
//! - [`Unblocked`](Upcall::Unblocked) runs the handler on a processor of the space. Its thread is
//!   preempted for that. The space learns that the activation can be resumed.
//! - [`Preempted`](Upcall::Preempted) runs the handler on another processor of the space. Its
//!   thread is preempted for that. The space learns that the activation can be resumed.
//!
//! Several events that wait for a processor come in one upcall, on the next one that the space
//! gets. An activation that has been stopped is never resumed by the kernel. The space decides
//! when, and on which of its processors ([`Next::Resume`]).
//!
//! # Division of the processors
//!
//! The allocator divides the processors evenly among the spaces of the highest priority that want
//! some. Processors that they do not want go to the others, and then to lower priorities.
//! Processors that cannot be divided evenly take turns, a quantum each (section 4.1). The threads
//! of the run that belong to no space (the body, and those that
//! [`inside::spawn`](crate::inside::spawn) makes) are one more space, of priority 0. It wants as
//! many processors as it has threads that can run. Among them they take turns as ever. If one of
//! them is pinned, it waits until its processor is theirs.
//!
//! # Invariants
//!
//! 1. A space has exactly as many running activations as it has processors, but for the moment in
//!    which one is on its way.
//! 2. Every stop of an activation is reported once, to its own space, and only its space makes it
//!    go on.
//! 3. No processor is free while a space wants one.
//!
//! Source: Anderson, Bershad, Lazowska and Levy 1992, sections 3 and 4.1, tables II and III. Left
//! out: that a thread may need more time in the kernel after it unblocks.

use crate::ThreadId;
use crate::services::Handler;
use crate::world::{outside, synchronize, with};
use std::rc::Rc;

pub use crate::services::{Next, Space, Upcall};

impl Space {
    /// Makes an address space that wants so many processors. Of two spaces the one of higher
    /// priority has all that it wants first.
    ///
    /// `handler` runs on several activations at the same time, and each may be preempted in it, as
    /// anywhere. Data that they share needs locks.
    ///
    /// ```
    /// use stanchion_simulator::inside::{self, Kind};
    /// use stanchion_simulator::os::activations::{Next, Space, Upcall};
    /// use stanchion_simulator::{Simulation, Time, machines};
    ///
    /// let run = Simulation::new(machines::firefly()).run(|| {
    ///     Space::new("jobs", 0, 4, |events| {
    ///         match events[0] {
    ///             // One piece of work on each processor.
    ///             Upcall::AddProcessor => inside::work(10_000_000),
    ///             Upcall::Unblocked(thread) | Upcall::Preempted(thread) => {
    ///                 return Next::Resume(thread);
    ///             }
    ///             Upcall::Blocked(_) => {}
    ///         }
    ///         Next::Idle
    ///     });
    /// })?;
    /// assert!(run.statistics.elapsed < Time::millis(15), "side by side");
    /// # Ok::<(), stanchion_simulator::Failure>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Outside a run, and if the machine has other applications or the run has gangs: the
    /// processors would be divided twice.
    #[must_use]
    pub fn new(
        name: &str,
        priority: i32,
        wanted: usize,
        handler: impl Fn(&[Upcall]) -> Next + 'static,
    ) -> Self {
        let handler: Handler = Rc::new(handler);
        synchronize();
        with(|world, id| world.kernel.add_space(id, name, (priority, wanted), handler))
            .unwrap_or_else(|| outside("os::activations::Space::new"))
    }

    /// "Add more processors": the space wants so many more than it does now. Takes the caller no
    /// time; each processor that comes takes an upcall.
    pub fn request(self, more: usize) {
        synchronize();
        with(|world, id| world.kernel.request(id, self.0, more))
            .unwrap_or_else(|| outside("os::activations::Space::request"));
    }

    /// Returns the number of processors of the space.
    #[must_use]
    pub fn processors(self) -> usize {
        synchronize();
        with(|world, _| world.kernel.assigned(self.0))
            .unwrap_or_else(|| outside("os::activations::Space::processors"))
    }

    /// Returns the number of processors that it wants.
    #[must_use]
    pub fn wanted(self) -> usize {
        with(|world, _| world.kernel.spaces.wanted(self.0))
            .unwrap_or_else(|| outside("os::activations::Space::wanted"))
    }

    /// Asks the kernel to interrupt an activation of the space on its processor, so that the
    /// handler can run a more important one there. The handler gets
    /// [`Preempted`](Upcall::Preempted). Does nothing if the activation does not run.
    pub fn interrupt(self, activation: ThreadId) {
        synchronize();
        with(|world, id| {
            let at = world.kernel.thread(id).time;
            world.kernel.interrupt_activation(self, activation, at);
        })
        .unwrap_or_else(|| outside("os::activations::Space::interrupt"));
    }
}
