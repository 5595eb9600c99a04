//! A member that is a thread of an executor. It meets the others at the gang's barrier, and finds
//! the values that they hand over in the gang's exchange buffers.

use std::rc::Rc;
use std::sync::Arc;

use stanchion_machine::clock::Deadline;

use super::barrier_wait::BarrierWait;
use super::exchanged::Exchanged;
use crate::barrier::{Barrier, Central};
use crate::data::Data;
use crate::error::Ended;
use crate::executor::MemberContext;
use crate::state::GangState;

/// A member that is a thread. Only that thread uses it.
pub(super) struct ThreadMember {
    /// Which member it is.
    index: usize,
    /// The state that the members share.
    gang: Arc<GangState>,
    /// The context of the thread.
    context: Rc<MemberContext>,
    /// The number of barriers and collectives that it has been through.
    phase: u64,
    /// The state that it keeps for the barrier.
    barrier_state: <Central as Barrier>::MemberState,
}

impl ThreadMember {
    pub(super) fn new(gang: Arc<GangState>, context: Rc<MemberContext>) -> Self {
        let index = context.index();
        Self {
            index,
            barrier_state: gang.completion.barrier.member_state(index),
            gang,
            context,
            phase: 0,
        }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn len(&self) -> usize {
        self.gang.members()
    }

    pub(super) fn gang(&self) -> &GangState {
        &self.gang
    }

    pub(super) fn context(&self) -> &MemberContext {
        &self.context
    }

    #[inline]
    pub(super) fn checkpoint(&mut self) -> Result<(), Ended> {
        self.context.check_turn();
        self.gang.completion.check()
    }

    #[inline]
    pub(super) fn barrier(&mut self) -> Result<(), Ended> {
        self.checkpoint()?;
        let mut policy = BarrierWait::new(&self.context);
        let barrier = &self.gang.completion.barrier;
        let crossed = barrier.wait_at(&mut self.barrier_state, &mut policy, Deadline::NEVER);
        drop(policy);
        match crossed {
            Ok(_) => {
                self.phase += 1;
                Ok(())
            }
            Err(_) => Err(self.gang.completion.reason()),
        }
    }

    pub(super) fn broadcast<T: Data>(&mut self, root: usize, value: T) -> Result<T, Ended> {
        if self.index == root {
            self.write(value);
        }
        self.barrier()?;
        Ok(self.read(root))
    }

    /// Returns the folded values for `root`, or for all.
    pub(super) fn reduce<T: Data>(
        &mut self,
        root: Option<usize>,
        value: T,
        op: impl Fn(T, T) -> T,
    ) -> Result<Option<T>, Ended> {
        self.write(value);
        self.barrier()?;
        let fold =
            || (1..self.len()).fold(self.read(0), |folded, member| op(folded, self.read(member)));
        Ok(self.is_for(root).then(fold))
    }

    /// Returns the values of all for `root`, or for all.
    pub(super) fn gather<T: Data>(
        &mut self,
        root: Option<usize>,
        value: T,
    ) -> Result<Option<Vec<T>>, Ended> {
        self.write(value);
        self.barrier()?;
        let all = || (0..self.len()).map(|member| self.read(member)).collect();
        Ok(self.is_for(root).then(all))
    }

    pub(super) fn gather_lists<T: Data>(
        &mut self,
        root: usize,
        list: Vec<T>,
    ) -> Result<Option<Vec<Vec<T>>>, Ended> {
        self.write_list(list);
        self.barrier()?;
        let all = || (0..self.len()).map(|member| self.read_list(member, <[T]>::to_vec)).collect();
        Ok((self.index == root).then(all))
    }

    pub(super) fn scatter<T: Data>(&mut self, root: usize, values: Vec<T>) -> Result<T, Ended> {
        if self.index == root {
            self.write_list(values);
        }
        self.barrier()?;
        Ok(self.read_list(root, |values: &[T]| values[self.index]))
    }

    pub(super) fn exchange_with_neighbours<T: Data>(
        &mut self,
        to_previous: &[T],
        to_next: &[T],
    ) -> Result<Exchanged<T>, Ended> {
        let number = to_previous.len();
        self.write_list([to_previous, to_next].concat());
        self.barrier()?;
        let list = |member, half: usize| {
            self.read_list(member, |both: &[T]| {
                assert!(
                    both.len() == 2 * number,
                    "member {member} hands over {} values and this one {number}: as many must go to each neighbour",
                    both.len() / 2
                );
                both[half * number..][..number].to_vec()
            })
        };
        let previous = self.index.checked_sub(1).map(|previous| list(previous, 1));
        let next = (self.index + 1 < self.len()).then(|| list(self.index + 1, 0));
        Ok((previous, next))
    }

    fn is_for(&self, root: Option<usize>) -> bool {
        root.is_none_or(|root| root == self.index)
    }

    fn write<T: Data>(&self, value: T) {
        // SAFETY: this member's own buffer, before it arrives.
        unsafe { self.gang.exchange.write(self.index, self.phase, value) };
    }

    fn write_list<T: Data>(&self, list: Vec<T>) {
        // SAFETY: this member's own buffer, before it arrives.
        unsafe { self.gang.exchange.write_list(self.index, self.phase, list) };
    }

    /// Returns the value that `member` has written. Called right after the crossing.
    fn read<T: Data>(&self, member: usize) -> T {
        // SAFETY: after the crossing, and before the next arrival.
        unsafe { self.gang.exchange.read(member, self.phase - 1) }
    }

    fn read_list<T: Data, R>(&self, member: usize, read: impl FnOnce(&[T]) -> R) -> R {
        // SAFETY: after the crossing, and before the next arrival.
        unsafe { self.gang.exchange.read_list(member, self.phase - 1, read) }
    }
}
