//! The handle of an executor.
//!
//! Why an owner between the handles and the core: threads must not keep an executor alive that has
//! no handle and runs no gang, and no thread must wait for another in a destructor. When the last
//! handle is dropped, and no gang runs, the owner commands the threads to end, and is dropped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use stanchion_machine::control::{self, Refused};

use super::context::MemberContext;
use super::core::Core;
use crate::error::SpawnError;
use crate::matrix::AllocationError;
use crate::metrics::Metrics;
use crate::switching::Switching;

/// Runs gangs: threads that run at the same time, each on a virtual processor of its own.
///
/// An executor has a number of virtual processors, best one for each CPU. If more members want to
/// run than there are processors, gangs take turns. Each gang gets a time slot, in which all its
/// members have their processors, for a quantum. Members of one gang can therefore wait for each
/// other by spinning.
///
/// Clones are handles to the same executor. When the last one is dropped, gangs that run go on to
/// their end, and then the threads end. No thread waits for that.
/// [`shutdown`](Self::shutdown) waits.
///
/// An executor does not live on in a child of `fork`: its threads are not there, and a gang that is
/// spawned there never runs.
///
/// ```
/// use stanchion_gang::{GangExecutor, Member};
///
/// let executor = GangExecutor::new(2)?;
/// let gang = executor.spawn(2, |member: &mut Member| {
///     let mut sum = member.index() as u64;
///     for _ in 0..10 {
///         sum = member.all_reduce(sum, |a, b| a + b)?;
///     }
///     Ok(sum)
/// })?;
/// assert_eq!(gang.join()?, [512, 512]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct GangExecutor {
    /// One reference for each handle, and one for each member that runs.
    owner: Arc<Owner>,
}

struct Owner {
    /// The part that the threads share.
    core: Arc<Core>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.core.begin_exit();
    }
}

impl GangExecutor {
    pub(super) fn of_core(core: Arc<Core>) -> Self {
        Self { owner: Arc::new(Owner { core }) }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }

    /// Returns the number of virtual processors, which is the size of the largest gang that this
    /// executor can run.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.core().settings.processors
    }

    /// Returns for how long a slot is on while others wait for their turn.
    #[must_use]
    pub fn quantum(&self) -> Duration {
        self.core().settings.quantum
    }

    /// Returns how members are taken off their processors when the turn of their slot is over: as
    /// the builder said, unless that is [refused](Self::switching_refused).
    #[must_use]
    pub fn switching(&self) -> Switching {
        match self.switching_refused() {
            None => self.core().settings.switching,
            Some(_) => Switching::Cooperative,
        }
    }

    /// Returns why members are not taken off as the builder said, if they are not: the system
    /// refuses it, or the program has taken the signal since. Costs a system call under
    /// [`Switching::Signal`].
    #[must_use]
    pub fn switching_refused(&self) -> Option<Refused> {
        let settings = &self.core().settings;
        settings.refused.clone().or_else(|| match settings.switching {
            Switching::Signal => control::still_interrupts().err(),
            Switching::Cooperative | Switching::Priority => None,
        })
    }

    /// Ends the executor: no gang can be spawned any more, and gangs that run go on to their end.
    /// Waits for these gangs and for the threads.
    ///
    /// A member of a gang of this executor would wait for itself, so there the call does not wait.
    /// If two threads call it at once, both wait for the gangs, and one of them for the threads.
    pub fn shutdown(self) {
        let core = self.core().clone();
        let is_member = MemberContext::with_current(|current| {
            current.is_some_and(|context| Arc::ptr_eq(context.executor().core(), &core))
        });
        for thread in core.shut_down(!is_member) {
            let _ = thread.join();
        }
    }

    /// Returns what the executor has done so far.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.core().metrics()
    }

    /// Returns the number of a new gang, or an error if no gang has that size. Asked before the
    /// gang's buffers are made.
    pub(crate) fn new_id(&self, members: usize) -> Result<u64, SpawnError> {
        AllocationError::check(members, self.processors())?;
        Ok(self.core().next_id())
    }
}

impl fmt::Debug for GangExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GangExecutor")
            .field("processors", &self.processors())
            .field("quantum", &self.quantum())
            .field("switching", &self.switching())
            .finish_non_exhaustive()
    }
}
