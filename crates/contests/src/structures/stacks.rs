//! Stacks.

use std::hint::black_box;

use stanchion_lockfree::ConcurrentStack;
use stanchion_lockfree::barging::Barging;
use stanchion_lockfree::stack::LockedStack;

use super::window::Structure;
use super::{Family, ROOM};

/// Returns all stacks.
pub(crate) fn family() -> Family {
    stanchion_lockfree::__structures!(stack: ours [Family::new("stacks")], u64)
        .ours::<Ours<LockedStack<u64, stanchion_spin::TestAndSet>>>("LockedStack TestAndSet")
        .ours::<Ours<LockedStack<u64, Barging>>>("LockedStack Barging")
        .peer::<scc::Stack<u64>>("scc Stack")
        .peer::<parking_lot::Mutex<Vec<u64>>>("parking_lot Mutex<Vec>")
}

/// A stack of this workspace.
pub(crate) struct Ours<S>(S);

impl<S: ConcurrentStack<Item = u64> + Default + Sync> Structure for Ours<S> {
    fn make(_: usize) -> Self {
        Self(S::default())
    }

    fn first(&self, number: u64) -> bool {
        self.0.push(number);
        true
    }

    fn second(&self) -> bool {
        black_box(self.0.pop()).is_some()
    }
}

impl Structure for scc::Stack<u64> {
    fn make(_: usize) -> Self {
        Self::default()
    }

    fn first(&self, number: u64) -> bool {
        self.push(number);
        true
    }

    fn second(&self) -> bool {
        black_box(self.pop().map(|entry| **entry)).is_some()
    }
}

impl Structure for parking_lot::Mutex<Vec<u64>> {
    fn make(_: usize) -> Self {
        Self::new(Vec::with_capacity(ROOM))
    }

    fn first(&self, number: u64) -> bool {
        self.lock().push(number);
        true
    }

    fn second(&self) -> bool {
        black_box(self.lock().pop()).is_some()
    }
}
