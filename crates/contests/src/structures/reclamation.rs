//! Schemes that tell when a node may be freed: a Treiber stack over each, with the same backoff.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crossbeam_epoch::{Atomic, Owned};
use seize::Guard as _;
use stanchion_lockfree::memory::{Counted, Hazard};
use stanchion_lockfree::stack::TreiberStack;
use stanchion_spin::Backoff;

use super::Family;
use super::stacks::Ours;
use super::window::Structure;

/// Returns all schemes.
pub(crate) fn family() -> Family {
    Family::new("reclamation")
        .ours::<Ours<TreiberStack<u64, Hazard>>>("Hazard")
        .ours::<Ours<TreiberStack<u64, Counted>>>("Counted")
        .peer::<Epoch>("crossbeam-epoch")
        .peer::<Haphazard>("haphazard")
        .peer::<Seize>("seize")
}

/// Takes everything out of a structure, so that it is freed.
fn empty<S: Structure>(structure: &S, is_empty: impl Fn() -> bool) {
    while !is_empty() {
        structure.second();
    }
}

/// A node under `crossbeam_epoch`.
struct EpochNode {
    /// The number in the stack.
    value: u64,
    /// The node below. Written before the node is published.
    next: Atomic<EpochNode>,
}

struct Epoch(Atomic<EpochNode>);

impl Structure for Epoch {
    fn make(_: usize) -> Self {
        Self(Atomic::null())
    }

    fn first(&self, number: u64) -> bool {
        let guard = crossbeam_epoch::pin();
        let mut node = Owned::new(EpochNode { value: number, next: Atomic::null() });
        let mut backoff = Backoff::new();
        loop {
            let top = self.0.load(Ordering::Relaxed, &guard);
            node.next.store(top, Ordering::Relaxed);
            match self.0.compare_exchange(top, node, Ordering::Release, Ordering::Relaxed, &guard) {
                Ok(_) => return true,
                Err(failed) => node = failed.new,
            }
            backoff.spin();
        }
    }

    fn second(&self) -> bool {
        let guard = crossbeam_epoch::pin();
        let mut backoff = Backoff::new();
        loop {
            let top = self.0.load(Ordering::Acquire, &guard);
            // SAFETY: if a thread can reach a node while it is pinned, the node is not freed before
            // the thread is unpinned.
            let Some(node) = (unsafe { top.as_ref() }) else { return false };
            let next = node.next.load(Ordering::Relaxed, &guard);
            let taken =
                self.0.compare_exchange(top, next, Ordering::Relaxed, Ordering::Relaxed, &guard);
            if taken.is_ok() {
                black_box(node.value);
                // SAFETY: the exchange removed the only path to the node.
                unsafe { guard.defer_destroy(top) };
                return true;
            }
            backoff.spin();
        }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        empty(self, || self.0.load(Ordering::Relaxed, &crossbeam_epoch::pin()).is_null());
    }
}

/// A node under the other schemes.
struct Node {
    /// The number in the stack.
    value: u64,
    /// The node below, or null. Written before the node is published.
    next: *mut Node,
}

// SAFETY: a node holds plain numbers, and the scheme keeps the node to which its pointer leads.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Node {
    fn boxed(value: u64) -> *mut Self {
        Box::into_raw(Box::new(Self { value, next: ptr::null_mut() }))
    }
}

struct Haphazard(haphazard::AtomicPtr<Node>);

impl Structure for Haphazard {
    fn make(_: usize) -> Self {
        // SAFETY: null is not dereferenced.
        Self(unsafe { haphazard::AtomicPtr::new(ptr::null_mut()) })
    }

    fn first(&self, number: u64) -> bool {
        let node = Node::boxed(number);
        let mut backoff = Backoff::new();
        loop {
            let top = self.0.load_ptr();
            // SAFETY: the node is not published yet.
            unsafe { (*node).next = top };
            // SAFETY: the node comes from a box, and is published once.
            if unsafe { self.0.compare_exchange_ptr(top, node) }.is_ok() {
                return true;
            }
            backoff.spin();
        }
    }

    fn second(&self) -> bool {
        let mut hazard = haphazard::HazardPointer::new();
        let mut backoff = Backoff::new();
        loop {
            // SAFETY: nodes are retired in the global domain only, after the exchange below.
            let Some(node) = (unsafe { self.0.load(&mut hazard) }) else { return false };
            let (value, next) = (node.value, node.next);
            let top = ptr::from_ref(node).cast_mut();
            // SAFETY: what is below the top is a node or null.
            if let Ok(Some(taken)) = unsafe { self.0.compare_exchange_ptr(top, next) } {
                black_box(value);
                // SAFETY: the exchange removed the only path to the node.
                unsafe { taken.retire() };
                return true;
            }
            backoff.spin();
        }
    }
}

impl Drop for Haphazard {
    fn drop(&mut self) {
        empty(self, || self.0.load_ptr().is_null());
    }
}

struct Seize {
    /// The top node, or null. Threads that push and pop exchange it.
    top: AtomicPtr<Node>,
    /// Frees the nodes of this stack.
    collector: seize::Collector,
}

impl Structure for Seize {
    fn make(_: usize) -> Self {
        Self { top: AtomicPtr::new(ptr::null_mut()), collector: seize::Collector::new() }
    }

    fn first(&self, number: u64) -> bool {
        let node = Node::boxed(number);
        let mut backoff = Backoff::new();
        loop {
            let top = self.top.load(Ordering::Relaxed);
            // SAFETY: the node is not published yet.
            unsafe { (*node).next = top };
            let pushed = self.top.compare_exchange(top, node, Ordering::Release, Ordering::Relaxed);
            if pushed.is_ok() {
                return true;
            }
            backoff.spin();
        }
    }

    fn second(&self) -> bool {
        let guard = self.collector.enter();
        let mut backoff = Backoff::new();
        loop {
            let top = guard.protect(&self.top, Ordering::Acquire);
            // SAFETY: a protected node is not freed before the guard is dropped.
            let Some(node) = (unsafe { top.as_ref() }) else { return false };
            let taken =
                self.top.compare_exchange(top, node.next, Ordering::Relaxed, Ordering::Relaxed);
            if taken.is_ok() {
                black_box(node.value);
                // SAFETY: the exchange removed the only path to the node.
                unsafe { guard.defer_retire(top, seize::reclaim::boxed) };
                return true;
            }
            backoff.spin();
        }
    }
}

impl Drop for Seize {
    fn drop(&mut self) {
        empty(self, || self.top.load(Ordering::Relaxed).is_null());
    }
}
