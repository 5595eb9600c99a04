//! A member of a gang as its closure sees it.

use core::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::exchanged::Exchanged;
#[cfg(feature = "mpi")]
use super::mpi::Ranks;
use super::thread_member::ThreadMember;
use crate::data::Data;
use crate::error::Ended;
use crate::executor::{GangExecutor, MemberContext};
use crate::state::GangState;

/// One of the threads that run together as a gang.
///
/// All members of a gang run the same closure. Each has an [`index`](Self::index) of its own. All
/// of them must call barriers and collectives, in the same order. Each call returns [`Ended`] once
/// the gang has been cancelled, or a member has panicked or returned an error. A barrier or
/// collective also returns it if a member has returned that should have come. Propagate it with
/// `?`.
pub struct Member {
    /// The way in which the member reaches the others.
    backend: Backend,
}

enum Backend {
    /// A thread of an executor.
    Thread(ThreadMember),
    /// A process of an MPI job.
    #[cfg(feature = "mpi")]
    Ranks(Rc<Ranks>),
}

/// Calls the same method on both kinds of members.
macro_rules! on_backend {
    ($member:expr, $one:ident => $done:expr) => {
        match $member {
            Backend::Thread($one) => $done,
            #[cfg(feature = "mpi")]
            Backend::Ranks($one) => $done,
        }
    };
}

impl Member {
    pub(crate) fn new(gang: Arc<GangState>, context: Rc<MemberContext>) -> Self {
        Self { backend: Backend::Thread(ThreadMember::new(gang, context)) }
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn of_ranks(ranks: Rc<Ranks>) -> Self {
        Self { backend: Backend::Ranks(ranks) }
    }

    /// Returns the index of this member, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        on_backend!(&self.backend, member => member.index())
    }

    /// Returns the number of members.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a gang is never empty")]
    pub fn len(&self) -> usize {
        on_backend!(&self.backend, member => member.len())
    }

    /// Returns the virtual processor of this member: from 0, less than the executor has. It may
    /// change while the gang is off. The processor of a rank of an MPI job is its index.
    #[must_use]
    pub fn processor(&self) -> usize {
        match &self.backend {
            Backend::Thread(member) => member.context().processor(),
            #[cfg(feature = "mpi")]
            Backend::Ranks(ranks) => ranks.index(),
        }
    }

    /// Returns the number of the gang: see [`GangHandle::id`](crate::ScopedGangHandle::id). 0 for
    /// the ranks of an MPI job.
    #[must_use]
    pub fn gang(&self) -> u64 {
        match &self.backend {
            Backend::Thread(member) => member.gang().id,
            #[cfg(feature = "mpi")]
            Backend::Ranks(_) => 0,
        }
    }

    /// Returns the executor, to spawn another gang. This member gives its processor up while it
    /// [joins](crate::ScopedGangHandle::join) that gang.
    ///
    /// # Panics
    ///
    /// If this is a rank of an MPI job, which has no executor. Build one for the gangs of a
    /// process.
    #[must_use]
    pub fn executor(&self) -> &GangExecutor {
        match &self.backend {
            Backend::Thread(member) => member.context().executor(),
            #[cfg(feature = "mpi")]
            Backend::Ranks(_) => panic!(
                "a rank of an MPI job has no executor: build a `GangExecutor` for gangs of this process"
            ),
        }
    }

    /// Returns the error by which this member ends the gang for the others too.
    ///
    /// ```
    /// use stanchion_gang::{GangError, GangExecutor, Member};
    ///
    /// let gang = GangExecutor::new(2)?.spawn(2, |member: &mut Member| {
    ///     if member.index() == 1 {
    ///         return Err(member.leave());
    ///     }
    ///     loop {
    ///         member.checkpoint()?;
    ///     }
    ///     #[expect(unreachable_code)]
    ///     Ok(())
    /// })?;
    /// assert!(matches!(gang.join(), Err(GangError::Left { member: 1 })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn leave(&self) -> Ended {
        Ended::Left { member: self.index() }
    }

    /// Gives the processor up if the gang's turn is over, and returns when the gang is on again.
    /// Costs a load or two while the gang is on, and a look at the clock while gangs take turns. A
    /// rank of an MPI job goes on at once: it learns at the next barrier or collective that the
    /// gang has ended.
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    #[inline]
    pub fn checkpoint(&mut self) -> Result<(), Ended> {
        match &mut self.backend {
            Backend::Thread(member) => member.checkpoint(),
            #[cfg(feature = "mpi")]
            Backend::Ranks(_) => Ok(()),
        }
    }

    /// Runs `body`, which blocks in the kernel or elsewhere, while the processor is free for other
    /// members. If all members of a gang are blocked, the gang takes no part in the rotation.
    ///
    /// Under [`Switching::Signal`](crate::Switching::Signal) no signal of the executor arrives in
    /// `body`, so none of its system calls ends with `EINTR` for one. That costs two system calls.
    pub fn blocking<R>(&mut self, body: impl FnOnce() -> R) -> R {
        match &mut self.backend {
            Backend::Thread(member) => member.context().suspended(body),
            #[cfg(feature = "mpi")]
            Backend::Ranks(_) => body(),
        }
    }

    /// Waits until all members have arrived here. What a member did before happens before what any
    /// member does after.
    ///
    /// A member that waits spins while its gang is on, for as long as
    /// [`GangExecutorBuilder::spin`](crate::GangExecutorBuilder::spin) says. Then it yields the CPU
    /// 64 times. Then it gives its processor up and sleeps until the others have arrived, whatever
    /// keeps them. It does not wake up in between.
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason: not all members will arrive.
    #[inline]
    pub fn barrier(&mut self) -> Result<(), Ended> {
        on_backend!(&mut self.backend, member => member.barrier())
    }

    /// Returns the value that member `root` has given. The values of the others are ignored.
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    ///
    /// # Panics
    ///
    /// If there is no member `root`, or the members do not all call this.
    pub fn broadcast<T: Data>(&mut self, root: usize, value: T) -> Result<T, Ended> {
        self.check_root(root);
        on_backend!(&mut self.backend, member => member.broadcast(root, value))
    }

    /// Folds the values of all members by `op` in the order of their indices, so that the result is
    /// the same in every run. Returns it to member `root`, and `None` to the others.
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    ///
    /// # Panics
    ///
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce<T: Data>(
        &mut self,
        root: usize,
        value: T,
        op: impl Fn(T, T) -> T,
    ) -> Result<Option<T>, Ended> {
        self.check_root(root);
        on_backend!(&mut self.backend, member => member.reduce(Some(root), value, op))
    }

    /// Folds the values of all members by `op` in the order of their indices, so that the result is
    /// the same in every run and for every member.
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    ///
    /// # Panics
    ///
    /// If the members do not all call this.
    pub fn all_reduce<T: Data>(&mut self, value: T, op: impl Fn(T, T) -> T) -> Result<T, Ended> {
        let folded = on_backend!(&mut self.backend, member => member.reduce(None, value, op))?;
        Ok(folded.expect("it is for all"))
    }

    /// Returns the values of all members, by index, to member `root`, and `None` to the others.
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    ///
    /// # Panics
    ///
    /// As [`broadcast`](Self::broadcast).
    pub fn gather<T: Data>(&mut self, root: usize, value: T) -> Result<Option<Vec<T>>, Ended> {
        self.check_root(root);
        on_backend!(&mut self.backend, member => member.gather(Some(root), value))
    }

    /// Returns the values of all members, by index.
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    ///
    /// # Panics
    ///
    /// If the members do not all call this.
    pub fn all_gather<T: Data>(&mut self, value: T) -> Result<Vec<T>, Ended> {
        let values = on_backend!(&mut self.backend, member => member.gather(None, value))?;
        Ok(values.expect("they are for all"))
    }

    /// Returns the lists of all members, by index, to member `root`, and `None` to the others. The
    /// lists may be of different lengths.
    ///
    /// ```
    /// use stanchion_gang::{GangExecutor, Member};
    ///
    /// let gang = GangExecutor::new(3)?.spawn(3, |member: &mut Member| {
    ///     let mine = vec![member.index() as u8; member.index()];
    ///     member.gather_lists(0, mine)
    /// })?;
    /// let lists = gang.join()?;
    /// assert_eq!(lists[0].as_deref(), Some(&[vec![], vec![1], vec![2, 2]][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    ///
    /// # Panics
    ///
    /// As [`broadcast`](Self::broadcast).
    pub fn gather_lists<T: Data>(
        &mut self,
        root: usize,
        list: Vec<T>,
    ) -> Result<Option<Vec<Vec<T>>>, Ended> {
        self.check_root(root);
        on_backend!(&mut self.backend, member => member.gather_lists(root, list))
    }

    /// Returns one of the values of member `root`, which gives one for each member. The others give
    /// `None`.
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    ///
    /// # Panics
    ///
    /// As [`broadcast`](Self::broadcast). Also in member `root`, if it does not give as many values
    /// as there are members.
    pub fn scatter<T: Data>(&mut self, root: usize, values: Option<Vec<T>>) -> Result<T, Ended> {
        self.check_root(root);
        let values = if self.index() == root { values.unwrap_or_default() } else { Vec::new() };
        if self.index() == root {
            let (given, members) = (values.len(), self.len());
            assert!(
                given == members,
                "scatter of {given} values to {members} members: give one for each"
            );
        }
        on_backend!(&mut self.backend, member => member.scatter(root, values))
    }

    /// Hands values to the members before and after this one, and returns what they hand to this
    /// one: `None` where there is no such member. Each step of a stencil needs this. It crosses one
    /// barrier.
    ///
    /// ```
    /// use stanchion_gang::{GangExecutor, Member};
    ///
    /// let gang = GangExecutor::new(3)?.spawn(3, |member: &mut Member| {
    ///     let me = member.index();
    ///     member.exchange_with_neighbours(&[10 * me], &[10 * me + 1])
    /// })?;
    /// assert_eq!(gang.join()?[1], (Some(vec![1]), Some(vec![20])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Ended`] and the reason.
    ///
    /// # Panics
    ///
    /// If the members do not all call this, or if one neighbour gets more values than the other.
    pub fn exchange_with_neighbours<T: Data>(
        &mut self,
        to_previous: &[T],
        to_next: &[T],
    ) -> Result<Exchanged<T>, Ended> {
        assert!(
            to_previous.len() == to_next.len(),
            "{} values for the previous member and {} for the next: as many must go to each",
            to_previous.len(),
            to_next.len()
        );
        on_backend!(&mut self.backend, member => member.exchange_with_neighbours(to_previous, to_next))
    }

    fn check_root(&self, root: usize) {
        let members = self.len();
        assert!(
            root < members,
            "member {root} of a gang of {members}: the last is {}",
            members - 1
        );
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("index", &self.index())
            .field("len", &self.len())
            .field("gang", &self.gang())
            .finish_non_exhaustive()
    }
}
