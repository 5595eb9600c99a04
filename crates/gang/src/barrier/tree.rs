//! The tree barrier: members arrive up a tree with four children for each node. One word says that
//! the root has been reached.
//!
//! Why not the central barrier: its arrivals are exchanges of one word, one after the other. Here
//! each member waits for its own children and then writes one flag in its parent's line, so
//! arrivals go on side by side. Why not a tree downwards as well, as the paper has for machines
//! without coherent caches: with caches, the paper found, it is better to spin on one word. A
//! barrier that breaks also has one word to say so.
//!
//! ```text
//!                 0                 a node's line   one flag for each child
//!          ┌────┬─┴──┬────┐         flag            0, 1  sense of the child's last phase
//!          1    2    3    4                         2     broken: read the phase word
//!        ┌─┼─┬─┐                                    + 4   the parent sleeps
//!        5 6 7 8  …                 phase word      phase, asleep and reason
//! ```
//!
//! `spin_then_sleep.rs` and `phase_word.rs` say more of sleepers and of the phase word.
//!
//! Why a child exchanges its flag and does not store it: the exchange finds out whether the parent
//! sleeps. It takes longer than a store, but the child has nothing else to do meanwhile: it waits
//! for the phase word.
//!
//! # Invariants
//!
//! 1. The root moves the phase word from p to p + 1 when its children have arrived. Then all have:
//!    each member has written its flag after its own children's. The phase word decides: a phase is
//!    crossed or broken.
//! 2. A flag holds the sense of phase p or p - 1, or broken, while its child's parent waits for it
//!    in phase p. The child cannot arrive in p + 1 before p is crossed, and so not before its
//!    parent has looked.
//! 3. A member that breaks a phase writes `BROKEN` into all flags afterwards, so that no parent
//!    waits for a child that will not arrive. A child that arrives just then may write over it.
//!    Then its parent has what it waited for, goes up, and learns it by the next flag that is
//!    broken or by the phase word. In later phases no member arrives: one that has learnt it enters
//!    by the phase word.
//! 4. No member that waits for a flag finds it broken for a later phase: that one could not have
//!    begun.
//! 5. Only the parent sets the bit of a sleeper, and only beside the sense of phase p - 1. Each
//!    write replaces it, and its writer wakes the parent.
//!
//! # Orderings
//!
//! A child's exchange of its flag is Release, its parent's look Acquire. So the root has acquired
//! what all members did, and crossing passes it on. `BROKEN` is Release as well, so that a parent
//! that finds it finds the reason in the phase word.
//!
//! Source: Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", TOCS 1991, section 3.4. The word that all members spin on is the variant that
//! their section 4 measures best on the Symmetry.

use core::fmt;

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::topology::CachePadded;
use stanchion_machine::wait::WaitPolicy;

use super::interface::{Barrier, Broken, Crossing, MOST_MEMBERS, WrongSize};
use super::phase_word::{Phase, PhaseWord};
use super::spin_then_sleep::{sleep_while, spin_then_sleep, wake_if_asleep};

/// The children of a node: the paper's number, which made its words fit and was the best of those
/// that it tried.
const CHILDREN: usize = 4;

/// The flag of a barrier that is broken, which is no sense.
const BROKEN: u32 = 2;

/// Returns the flag of a child that has arrived.
#[inline]
fn sense(phase: Phase) -> u32 {
    // Before the first phase, an even one, flags are 0.
    u32::from(!phase.is_odd())
}

/// A barrier for many members, which wait through [`Waiter`](super::Waiter)s. Member 0 leads.
///
/// - To cross: one exchange for each arrival, of a flag that two members use. From the first member
///   to the last it takes log₄ of their number.
/// - Size: a line for each member that has children, and one.
/// - With more threads than processors: as its wait policy. A member without a processor keeps
///   those above it waiting.
/// - A long wait: where its wait policy would sleep, a member sleeps until its flag is written.
///   Each flag that a member sleeps on costs a system call.
///
/// ```
/// use stanchion_gang::{Waiter, barrier::Tree};
///
/// let barrier = Tree::new(7)?;
/// std::thread::scope(|scope| {
///     for mut waiter in Waiter::all(&barrier) {
///         let is_first = waiter.index() == 0;
///         scope.spawn(move || assert_eq!(waiter.wait().unwrap().is_leader(), is_first));
///     }
/// });
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct Tree {
    /// For each member that has children, their flags. Each child writes its own.
    nodes: Box<[CachePadded<[AtomicU32; CHILDREN]>]>,
    /// Decides phases. Written by member 0, or by a member that breaks the barrier.
    phase_word: PhaseWord,
    /// The number of members.
    members: usize,
}

/// The state of a member of a [`Tree`].
#[derive(Debug)]
pub struct TreeState {
    /// Which member it is.
    index: usize,
    /// The phase that it waits for next.
    phase: Phase,
}

impl Tree {
    /// Creates a barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        Self::before(Phase::FIRST, members)
    }

    fn before(phase: Phase, members: usize) -> Result<Self, WrongSize> {
        WrongSize::check(members, MOST_MEMBERS)?;
        let last_sense = 1 - sense(phase);
        let node = |_| CachePadded::new([(); CHILDREN].map(|()| AtomicU32::fresh(last_sense)));
        let nodes = (0..(members - 1).div_ceil(CHILDREN)).map(node).collect();
        Ok(Self { nodes, phase_word: PhaseWord::before(phase), members })
    }

    /// Returns the flags of a member's children.
    #[inline]
    fn children(&self, index: usize) -> &[AtomicU32] {
        let first = index * CHILDREN + 1;
        match self.nodes.get(index) {
            Some(node) => &node[..CHILDREN.min(self.members - first)],
            None => &[],
        }
    }

    /// Goes up from the leaves: waits for the children, then writes the flag in the parent's line
    /// or, at the root, crosses the phase.
    #[inline]
    fn ascend(
        &self,
        index: usize,
        phase: Phase,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<(), Broken> {
        let sense = sense(phase);
        for child in self.children(index) {
            // Acquire, in there: pairs with the child's Release, or with that of
            // `mark_flags_broken`.
            let flag = spin_then_sleep(
                child,
                |flag| flag == sense || flag == BROKEN,
                policy,
                deadline,
                || sleep_while(child, 1 - sense, deadline),
            );
            match flag {
                Some(BROKEN) => return Err(self.phase_word.broken().expect("Invariant 3")),
                Some(_) => {}
                None => return self.give_up(phase),
            }
        }
        let Some(above) = index.checked_sub(1) else { return self.phase_word.cross(phase) };
        let flag = &self.nodes[above / CHILDREN][above % CHILDREN];
        // Release: pairs with the parent's Acquire.
        let before = flag.swap(sense, Ordering::Release);
        wake_if_asleep(flag, before);
        match self.phase_word.wait(phase, policy, deadline) {
            Some(outcome) => outcome,
            None => self.give_up(phase),
        }
    }

    #[cold]
    fn give_up(&self, phase: Phase) -> Result<(), Broken> {
        let (outcome, mine) = self.phase_word.give_up(phase);
        if mine {
            self.mark_flags_broken();
        }
        outcome
    }

    /// The second half of breaking (Invariant 3).
    fn mark_flags_broken(&self) {
        for flag in self.nodes.iter().flat_map(|node| node.iter()) {
            // Release: pairs with the Acquire of the parent, which then reads the reason.
            let before = flag.swap(BROKEN, Ordering::Release);
            wake_if_asleep(flag, before);
        }
    }
}

impl Barrier for Tree {
    type MemberState = TreeState;

    fn with_members(members: usize) -> Result<Self, WrongSize> {
        Self::new(members)
    }

    fn members(&self) -> usize {
        self.members
    }

    fn member_state(&self, index: usize) -> Self::MemberState {
        assert!(index < self.members, "member {index} of a barrier for {}", self.members);
        TreeState { index, phase: self.phase_word.phase() }
    }

    #[inline]
    fn wait_at(
        &self,
        state: &mut Self::MemberState,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        if let Some(why) = self.phase_word.broken() {
            return Err(why);
        }
        self.ascend(state.index, state.phase, policy, deadline)?;
        state.phase = state.phase.next();
        Ok(Crossing::of_leader(state.index == 0))
    }

    fn break_with(&self, why: Broken) {
        if self.phase_word.break_with(why) {
            self.mark_flags_broken();
        }
    }

    fn broken(&self) -> Option<Broken> {
        self.phase_word.broken()
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("members", &self.members)
            .field("broken", &self.broken())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barrier::tests::crosses;

    #[test]
    fn phases_wrap_around() {
        for members in [2, 5, 6, 23] {
            crosses(&Tree::before(Phase::LAST, members).unwrap());
        }
    }
}
