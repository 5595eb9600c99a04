//! A member of a gang, as its closure sees it.

use core::fmt;
use std::rc::Rc;
use std::sync::Arc;

#[cfg(feature = "mpi")]
use super::ranks::Ranks;
use super::thread_member::ThreadMember;
use crate::data::Data;
use crate::error::Ended;
use crate::executor::GangExecutor;
use crate::executor::MemberContext;
use crate::state::GangState;

/// One of the threads that run together as a gang.
///
/// All members of a gang run the same closure; their [`index`](Self::index) tells them apart.
/// Barriers and collectives are to be called by all of them, in the same order. Each call returns
/// [`Ended`] once the gang has been cancelled, or a member has panicked or returned an error; the
/// barriers and collectives also if a member has returned that should have come. Hand it on with
/// `?`.
pub struct Member {
    backend: Backend,
}

/// How a member reaches the others.
enum Backend {
    /// A thread of an executor.
    Thread(ThreadMember),
    /// A process of an MPI job.
    #[cfg(feature = "mpi")]
    Ranks(Rc<Ranks>),
}

/// The same of both kinds of members.
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
    pub(crate) fn new(index: usize, gang: Arc<GangState>, context: Rc<MemberContext>) -> Self {
        Self { backend: Backend::Thread(ThreadMember::new(index, gang, context)) }
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn of_ranks(ranks: Rc<Ranks>) -> Self {
        Self { backend: Backend::Ranks(ranks) }
    }

    /// Which member this is, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        on_backend!(&self.backend, member => member.index())
    }

    /// How many members there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a gang is never empty")]
    pub fn len(&self) -> usize {
        on_backend!(&self.backend, member => member.len())
    }

    /// On which seat it sits: from 0, less than the executor has. It may be given another while its
    /// gang is off. A rank of an MPI job sits on the seat of its own number.
    #[must_use]
    pub fn processor(&self) -> usize {
        match &self.backend {
            Backend::Thread(member) => member.context().processor(),
            #[cfg(feature = "mpi")]
            Backend::Ranks(ranks) => ranks.index(),
        }
    }

    /// The number of the gang: see [`GangHandle::id`](crate::GangHandle::id). 0 for the ranks of an
    /// MPI job.
    #[must_use]
    pub fn gang(&self) -> u64 {
        match &self.backend {
            Backend::Thread(member) => member.gang().id,
            #[cfg(feature = "mpi")]
            Backend::Ranks(_) => 0,
        }
    }

    /// The executor, to spawn another gang. [Joining](crate::GangHandle::join) that gang gives this
    /// member's seat away meanwhile.
    ///
    /// # Panics
    ///
    /// If this is a rank of an MPI job: there is none. Build one for the gangs of a process.
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

    /// What this member returns to end the gang for the others too.
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

    /// Leaves the seat if the gang's turn is over, and returns when it is on again. A load or two
    /// while it is on, and while gangs take turns a look at the clock. A rank of an MPI job goes on
    /// at once: it learns at the next barrier or collective that the gang has ended.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    #[inline]
    pub fn checkpoint(&mut self) -> Result<(), Ended> {
        match &mut self.backend {
            Backend::Thread(member) => member.checkpoint(),
            #[cfg(feature = "mpi")]
            Backend::Ranks(_) => Ok(()),
        }
    }

    /// Does something that blocks, in the kernel or elsewhere: the seat is free for others
    /// meanwhile, and the gang does not take part in the rotation if all its members are blocked.
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

    /// Waits until all members have come here. What a member did before happens before what any
    /// does after.
    ///
    /// A member that waits spins while its gang is on, for as long as
    /// [`GangExecutorBuilder::spin`](crate::GangExecutorBuilder::spin) says. Then it yields the
    /// processor 64 times. Then it gives its seat away and sleeps until the others have come,
    /// whatever keeps them. It does not wake up in between.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why: not all will come.
    #[inline]
    pub fn barrier(&mut self) -> Result<(), Ended> {
        on_backend!(&mut self.backend, member => member.barrier())
    }

    /// The value that member `root` has given; what the others give is not looked at.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    ///
    /// # Panics
    ///
    /// If there is no member `root`, or the members do not all call this.
    pub fn broadcast<T: Data>(&mut self, root: usize, value: T) -> Result<T, Ended> {
        self.check_root(root);
        on_backend!(&mut self.backend, member => member.broadcast(root, value))
    }

    /// The values of all members, folded by `op` in the order of their indices, so that the result
    /// is the same in every run: for member `root`, and `None` for the others.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
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

    /// The values of all members, folded by `op` in the order of their indices, so that the result
    /// is the same in every run and for every member.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    ///
    /// # Panics
    ///
    /// If the members do not all call this.
    pub fn all_reduce<T: Data>(&mut self, value: T, op: impl Fn(T, T) -> T) -> Result<T, Ended> {
        let folded = on_backend!(&mut self.backend, member => member.reduce(None, value, op))?;
        Ok(folded.expect("it is for all"))
    }

    /// The values of all members, by index: for member `root`, and `None` for the others.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    ///
    /// # Panics
    ///
    /// As [`broadcast`](Self::broadcast).
    pub fn gather<T: Data>(&mut self, root: usize, value: T) -> Result<Option<Vec<T>>, Ended> {
        self.check_root(root);
        on_backend!(&mut self.backend, member => member.gather(Some(root), value))
    }

    /// The values of all members, by index.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    ///
    /// # Panics
    ///
    /// If the members do not all call this.
    pub fn all_gather<T: Data>(&mut self, value: T) -> Result<Vec<T>, Ended> {
        let values = on_backend!(&mut self.backend, member => member.gather(None, value))?;
        Ok(values.expect("they are for all"))
    }

    /// The lists of all members, by index, which may be of different lengths: for member `root`,
    /// and `None` for the others.
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
    /// [`Ended`], and why.
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

    /// Of the values that member `root` gives, one for each member, the one for this. The others
    /// give `None`.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    ///
    /// # Panics
    ///
    /// As [`broadcast`](Self::broadcast); and in `root`, if it does not give as many as there are
    /// members.
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

    /// Hands values to the members before and after this one, and gets what they hand to this one:
    /// `None` where there is no such member. It is what each step of a stencil needs, and crosses
    /// one barrier.
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
    /// [`Ended`], and why.
    ///
    /// # Panics
    ///
    /// If the members do not all call this, or if not as many values go to one neighbour as to the
    /// other.
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

/// What the previous and the next member have handed to this one.
pub type Exchanged<T> = (Option<Vec<T>>, Option<Vec<T>>);

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("index", &self.index())
            .field("len", &self.len())
            .field("gang", &self.gang())
            .finish_non_exhaustive()
    }
}
