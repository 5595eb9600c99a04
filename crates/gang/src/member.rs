//! A member of a gang, as its closure sees it.

use core::fmt;
use std::rc::Rc;
use std::sync::Arc;

use machine::clock::Deadline;

use crate::barrier::{Barrier, Central};
use crate::data::Data;
use crate::error::Ended;
use crate::executor::GangExecutor;
use crate::post::Post;
use crate::team::Team;

/// One of the threads that run together as a gang.
///
/// All members of a gang run the same closure; their [`index`](Self::index) tells them apart. Barriers and collectives are to be called by all of
/// them, in the same order. Each call returns [`Ended`] once the gang has been cancelled, or a member has panicked or returned an error; the barriers
/// and collectives also if a member has returned that should have come. Hand it on with `?`.
pub struct Member {
    index: usize,
    team: Arc<Team>,
    post: Rc<Post>,
    /// How many barriers and collectives it has been through.
    phase: u64,
    place: <Central as Barrier>::Place,
}

impl Member {
    pub(crate) fn new(index: usize, team: Arc<Team>, post: Rc<Post>) -> Self {
        let place = team.barrier.place(index);
        Self { index, team, post, phase: 0, place }
    }

    /// Which member this is, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many members there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a gang is never empty")]
    pub fn len(&self) -> usize {
        self.team.members()
    }

    /// On which seat it sits: from 0, less than the executor has. It may be given another while its gang is off.
    #[must_use]
    pub fn seat(&self) -> usize {
        self.post.seat()
    }

    /// The number of the gang: see [`GangHandle::id`](crate::GangHandle::id).
    #[must_use]
    pub fn gang(&self) -> u64 {
        self.team.id
    }

    /// The executor, to spawn another gang. [Joining](crate::GangHandle::join) that gang gives this member's seat away meanwhile.
    #[must_use]
    pub fn executor(&self) -> &GangExecutor {
        self.post.executor()
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
        Ended::Left { member: self.index }
    }

    /// Leaves the seat if the gang's turn is over, and returns when it is on again. A load or two while it is on, and while gangs take turns a look
    /// at the clock.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    #[inline]
    pub fn checkpoint(&mut self) -> Result<(), Ended> {
        self.post.look();
        self.team.check()
    }

    /// Does something that blocks, in the kernel or elsewhere: the seat is free for others meanwhile, and the gang does not take part in the rotation
    /// if all its members are blocked.
    pub fn blocking<R>(&mut self, body: impl FnOnce() -> R) -> R {
        self.post.suspended(body)
    }

    /// Waits until all members have come here. What a member did before happens before what any does after.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why: not all will come.
    pub fn barrier(&mut self) -> Result<(), Ended> {
        self.checkpoint()?;
        let (gate, berths) = (self.post.gate(), self.post.berths());
        let absent = || berths.iter().any(|&berth| !gate.is_active(berth));
        let mut policy = self.post.waits(absent);
        let crossed = self.team.barrier.wait_at(&mut self.place, &mut policy, Deadline::NEVER);
        drop(policy);
        match crossed {
            Ok(_) => {
                self.phase += 1;
                Ok(())
            }
            Err(_) => Err(self.team.why_broken()),
        }
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
        if self.index == root {
            self.post_value(value);
        }
        self.barrier()?;
        Ok(self.read(root))
    }

    /// The values of all members, folded by `op` in the order of their indices, so that the result is the same in every run: for member `root`, and
    /// `None` for the others.
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
        self.post_value(value);
        self.barrier()?;
        Ok((self.index == root).then(|| self.fold(op)))
    }

    /// The values of all members, folded by `op` in the order of their indices, so that the result is the same in every run and for every member.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    ///
    /// # Panics
    ///
    /// If the members do not all call this.
    pub fn all_reduce<T: Data>(&mut self, value: T, op: impl Fn(T, T) -> T) -> Result<T, Ended> {
        self.post_value(value);
        self.barrier()?;
        Ok(self.fold(op))
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
        self.post_value(value);
        self.barrier()?;
        Ok((self.index == root).then(|| self.read_all()))
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
        self.post_value(value);
        self.barrier()?;
        Ok(self.read_all())
    }

    /// Of the values that member `root` gives, one for each member, the one for this. The others give `None`.
    ///
    /// # Errors
    ///
    /// [`Ended`], and why.
    ///
    /// # Panics
    ///
    /// As [`broadcast`](Self::broadcast); and in `root`, if it does not give as many as there are members.
    pub fn scatter<T: Data>(&mut self, root: usize, values: Option<Vec<T>>) -> Result<T, Ended> {
        self.check_root(root);
        if self.index == root {
            let values = values.unwrap_or_default();
            let (given, members) = (values.len(), self.len());
            assert!(
                given == members,
                "scatter of {given} values to {members} members: give one for each"
            );
            // SAFETY: its own place, before it arrives.
            unsafe { self.team.board.post_list(root, self.phase, values) };
        }
        self.barrier()?;
        let index = self.index;
        // SAFETY: after the crossing, and before the next arrival.
        Ok(unsafe { self.team.board.with_list(root, self.phase - 1, |list: &[T]| list[index]) })
    }

    fn check_root(&self, root: usize) {
        let members = self.len();
        assert!(
            root < members,
            "member {root} of a gang of {members}: the last is {}",
            members - 1
        );
    }

    fn post_value<T: Data>(&self, value: T) {
        // SAFETY: its own place, before it arrives.
        unsafe { self.team.board.post(self.index, self.phase, value) };
    }

    /// What a member has given, right after the crossing.
    fn read<T: Data>(&self, member: usize) -> T {
        // SAFETY: after the crossing, and before the next arrival.
        unsafe { self.team.board.read(member, self.phase - 1) }
    }

    fn read_all<T: Data>(&self) -> Vec<T> {
        (0..self.len()).map(|member| self.read(member)).collect()
    }

    fn fold<T: Data>(&self, op: impl Fn(T, T) -> T) -> T {
        (1..self.len()).fold(self.read(0), |folded, member| op(folded, self.read(member)))
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("index", &self.index)
            .field("len", &self.len())
            .field("gang", &self.team.id)
            .finish_non_exhaustive()
    }
}
