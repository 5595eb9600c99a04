//! Hazard pointers: a thread announces the nodes that it looks at, and no thread frees those.
//!
//! Why not epochs: a thread that stops in the middle of an operation then keeps back everything
//! that is taken out from there on, without bound. Here it keeps back three nodes, and those that
//! wait in its own list.
//!
//! Why written here: memory that is not made of `machine`'s atomics can be neither modelled nor
//! stalled nor simulated. Why per structure and not for the whole process: dropping the structure
//! frees everything, values need not be `'static`, and a scan looks only at the users of *this*
//! structure.
//!
//! ```text
//! a thread that looks                  a thread that takes out
//! -------------------                  -----------------------
//! read the link: node N                change the link
//! announce N                           put N on the own list; from time to time:
//! light()                              heavy()
//! is the link still N?                 is N announced by any thread?
//!                                      if not, use it again or free it
//! ```
//!
//! The fences are those of the [`Handshake`] [`RETIREMENT`]. If the look at the link comes before
//! the change, the scan sees the announcement, and N stays. If it comes after, it does not find N,
//! and the thread does not touch it.
//!
//! Each thread has a record in each structure that it has used, found by its [`index`]. A later
//! thread with that index goes on with the record and its list. A thread may have no index, because
//! it is ending or there are too many threads. Then it takes a guest's record for the length of the
//! operation. So does an operation inside of an operation.
//!
//! # Garbage
//!
//! A record scans when the number of nodes in its list exceeds that of its [`Pace`], *n*. Nodes
//! that the last scan had to leave there do not count. So in a structure that *t* threads have used
//! at a time, at most *n* + 3*t* nodes wait in each list, (*n* + 3*t*) · *t* in all, whichever
//! thread is stopped where.
//!
//! | nodes of | *n* | *n* while barriers take long | most ready to be used again |
//! | --- | --- | --- | --- |
//! | at most 64 bytes | 256 | up to 4,096 | 256 |
//! | up to 256 bytes | 256 | up to 256 KiB | 256 |
//! | up to 16 KiB | 64 KiB | up to 256 KiB | 64 KiB |
//! | more | 4 | up to 256 KiB | 64 KiB, or one |
//!
//! Barriers take long if they take more than an eighth of the thread's time. Why *n* is greater
//! then: the kernel carries out the barriers of all processes one after another. If several
//! processes scan often, or one that is in a barrier loses its processor, each scan waits for the
//! others.
//!
//! # Invariants
//!
//! 1. Only the thread that has set a record's `taken` touches its `lists` and writes its hazards,
//!    until it clears `taken`.
//! 2. A node is on one list at most: retired by the one thread that took it out, or ready in one
//!    record, or neither.
//! 3. A retired node is used again or freed only after a scan that began after it was retired did
//!    not find it announced.
//! 4. Records are never freed before the structure is dropped.
//!
//! # Orderings
//!
//! - **Announce**: Release. The partner is the scan's Acquire: the thread is done with the node
//!   that was announced there before.
//! - **Announce, then look at the link**: the light fence of [`RETIREMENT`]. The partner is its
//!   heavy fence between the change of the link and the scan.
//! - **Take back an announcement**: Release. The partner is the scan's Acquire, as above.
//! - **Set `taken` of a thread's own record**: Relaxed, without a partner. A later thread with the
//!   same index begins after this one has ended.
//! - **Set `taken` of a guest's record** (exchange): Acquire. The partner is the Release store that
//!   cleared it.
//! - **Put a guest's record into the list**: Release. The partner is the Acquire load of a thread
//!   that walks the list.
//!
//! Source: Maged Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects", IEEE
//! TPDS 15(6), 2004. The asymmetric barrier is that of folly's `hazptr` (2018).
//!
//! [`index`]: stanchion_machine::thread::index

mod node;
mod pace;

use core::cell::Cell;
use core::ptr;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicBool, AtomicPtr, Fresh, Ordering, signal_fence};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::handshake::{Handshake, Reach};
use stanchion_machine::thread;

use self::node::{HazardLink, Node, free, make};
use self::pace::{Pace, ready};
use super::segments::Segments;
use super::{HAZARDS, Hazard, Link, Memory, Operation, Store};

impl Memory for Hazard {
    type Store<T> = HazardStore<T>;
}

/// A thread that announces a node against a scan for retired nodes: the scan sees the announcement,
/// or the thread sees that the link has changed. Any thread may announce a node.
const RETIREMENT: Handshake =
    Handshake::new("Record::hazards", "the link to the node", Reach::AllThreads);

/// Segments enough for [`thread::INDICES`] records; a model has at most five threads.
const SEGMENTS: usize = stanchion_machine::sized(14, 2);

/// The nodes that one thread announces, and those that it has to give back.
struct Record<T> {
    /// The nodes that the thread looks at, or null. Written by the thread that has taken the
    /// record.
    hazards: [AtomicPtr<Node<T>>; HAZARDS],
    /// Set while an operation uses the record. Written by that operation's thread.
    taken: AtomicBool,
    /// The nodes that the thread has to give back. Touched by the thread that has taken the record.
    lists: UnsafeCell<Lists<T>>,
}

/// The nodes of a record. Only the thread that has taken the record touches them.
struct Lists<T> {
    /// Nodes that were taken out of the structure. Other threads may still look at them.
    retired: Vec<*mut Node<T>>,
    /// Nodes that no thread looks at.
    ready: Vec<*mut Node<T>>,
    /// Room for a scan to write down the nodes that are announced.
    announced: Vec<*mut Node<T>>,
    /// The length of `retired` at which the record scans.
    limit: usize,
    /// The number of nodes after which it scans, and the time that its barriers take.
    pace: Pace,
}

impl<T> Lists<T> {
    /// The most nodes that are kept ready.
    const READY: usize = ready(size_of::<Node<T>>());
}

impl<T> Record<T> {
    fn vacant() -> CachePadded<Self> {
        Self::new(false)
    }

    fn new(taken: bool) -> CachePadded<Self> {
        let pace = Pace::of(size_of::<Node<T>>());
        CachePadded::new(Self {
            hazards: core::array::from_fn(|_| AtomicPtr::fresh(ptr::null_mut())),
            taken: AtomicBool::fresh(taken),
            lists: UnsafeCell::new(Lists {
                retired: Vec::new(),
                ready: Vec::new(),
                announced: Vec::new(),
                limit: pace.nodes,
                pace,
            }),
        })
    }
}

impl<T> Drop for Lists<T> {
    fn drop(&mut self) {
        for &node in self.retired.iter().chain(&self.ready) {
            // SAFETY: records are dropped with the structure, so no thread looks at its nodes any
            // more. Each is on one list (Invariant 2).
            unsafe { free(node) };
        }
    }
}

/// A record in the list for threads without an index.
struct Guest<T> {
    /// The record. It is used again by other guests.
    record: CachePadded<Record<T>>,
    /// The next record of the list, or null. Written before this one is published.
    next: *const Guest<T>,
}

/// The records of one structure.
pub struct HazardStore<T> {
    /// The records of the threads with an index, by that index.
    records: Segments<CachePadded<Record<T>>, SEGMENTS>,
    /// The list of the other records. Written by threads that find none free.
    guests: AtomicPtr<Guest<T>>,
}

// SAFETY: values and nodes go from one thread to another, hence `T: Send`. One thread at a time
// touches the lists of a record (Invariant 1).
unsafe impl<T: Send> Send for HazardStore<T> {}
// SAFETY: as above; no thread gets a shared reference to a value.
unsafe impl<T: Send> Sync for HazardStore<T> {}

impl<T> HazardStore<T> {
    /// Takes the record of the calling thread.
    #[inline]
    fn take_record(&self) -> &Record<T> {
        if let Some(index) = thread::index().filter(|&index| index < thread::INDICES) {
            let record = self.records.get_or_make(index, Record::vacant);
            // Relaxed, both: only this thread sets and clears it. A signal handler that interrupts
            // the thread is over before the thread goes on (Invariant 1).
            if !record.taken.load(Ordering::Relaxed) {
                record.taken.store(true, Ordering::Relaxed);
                // A signal handler that uses the structure must find the mark before anything is
                // done with the record. The compiler may not turn that round. A panic needs no
                // fence: it comes in the order of the program. The Release that clears the mark
                // keeps what is before it there.
                signal_fence();
                return record;
            }
        }
        self.take_guest()
    }

    /// Takes a guest's record: one that is free, or a new one.
    #[cold]
    fn take_guest(&self) -> &Record<T> {
        let free = self.guests().find(|record| {
            // Acquire: pairs with the Release of its last user. Relaxed: then it is not free.
            record.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        if let Some(record) = free {
            return record;
        }
        let guest = Box::into_raw(Box::new(Guest { record: Record::new(true), next: ptr::null() }));
        loop {
            // Relaxed: the exchange is what counts.
            let first = self.guests.load(Ordering::Relaxed);
            // SAFETY: this thread made it, and no other thread sees it before the exchange.
            unsafe { (*guest).next = first };
            // Release: pairs with the Acquire of a thread that walks the list. The records behind
            // this one were published by exchanges before it. A thread that walks the list acquires
            // those as well, because every write of the word is an exchange. Relaxed: the loop
            // loads again.
            let linked =
                self.guests.compare_exchange(first, guest, Ordering::Release, Ordering::Relaxed);
            if linked.is_ok() {
                // SAFETY: records stay until the structure is dropped (Invariant 4).
                return unsafe { &(*guest).record };
            }
        }
    }

    /// Returns all guests' records.
    fn guests(&self) -> impl Iterator<Item = &Record<T>> {
        // Acquire: pairs with the Release that put the guest into the list.
        let mut next = self.guests.load(Ordering::Acquire).cast_const();
        core::iter::from_fn(move || {
            // SAFETY: null or a guest, which stays until the structure is dropped (Invariant 4).
            let guest = unsafe { next.as_ref() }?;
            next = guest.next;
            Some(&*guest.record)
        })
    }

    /// Makes the nodes ready, or frees them, that no thread looks at. Leaves the rest in the list.
    #[cold]
    fn scan(&self, lists: &mut Lists<T>) {
        // Retired nodes had been taken out of the structure. A thread that does not see that has
        // announced the node that it looks at, visibly from here on.
        lists.pace.barrier();
        lists.announced.clear();
        for record in self.records.iter().map(|record| &**record).chain(self.guests()) {
            for hazard in &record.hazards {
                // Acquire: pairs with the Release of an announcement or its end: the thread is done
                // with the node before.
                let node = hazard.load(Ordering::Acquire);
                if !node.is_null() {
                    lists.announced.push(node);
                }
            }
        }
        lists.announced.sort_unstable();
        let Lists { retired, ready, announced, limit, pace } = lists;
        retired.retain(|node| {
            if announced.binary_search(node).is_ok() {
                return true;
            }
            if ready.len() < Lists::<T>::READY {
                ready.push(*node);
            } else {
                // SAFETY: no thread looks at it (Invariant 3), and it leaves the only list it is
                // on.
                unsafe { free(*node) };
            }
            false
        });
        *limit = retired.len() + pace.nodes;
    }
}

impl<T> Drop for HazardStore<T> {
    fn drop(&mut self) {
        // Relaxed: the owner is alone.
        let mut next = self.guests.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: guests come from boxes and are in the list once. No thread uses them any
            // more.
            let guest = unsafe { Box::from_raw(next) };
            next = guest.next.cast_mut();
        }
    }
}

// SAFETY: if a node is announced and, after that, seen not to have been retired, it is not used
// again before the announcement ends (Invariant 3 and the header). No other thread sees an owned
// node.
unsafe impl<T> Store<T> for HazardStore<T> {
    type Pointer = *mut Node<T>;
    type Link = HazardLink<T>;
    type Operation<'s>
        = HazardOperation<'s, T>
    where
        T: 's;

    const NEW: Self = Self { records: Segments::new(), guests: AtomicPtr::new(ptr::null_mut()) };
    const NULL: *mut Node<T> = ptr::null_mut();

    fn with_capacity(_capacity: usize) -> Self {
        Self::NEW
    }

    #[inline]
    fn enter(&self) -> HazardOperation<'_, T> {
        HazardOperation { store: self, record: self.take_record(), announced: Cell::new(0) }
    }
}

/// An operation and its thread's record.
pub struct HazardOperation<'s, T> {
    /// The store that the operation works on.
    store: &'s HazardStore<T>,
    /// The record that the operation has taken.
    record: &'s Record<T>,
    /// The number of hazards that may have been used: the first ones.
    announced: Cell<usize>,
}

impl<T> HazardOperation<'_, T> {
    /// Calls `with` with the lists of the record.
    #[inline]
    fn lists<R>(&self, with: impl FnOnce(&mut Lists<T>) -> R) -> R {
        self.record.lists.with_mut(|lists| {
            // SAFETY: the operation has taken the record (Invariant 1), and `with` calls nothing
            // that comes back here.
            let lists = unsafe { &mut *lists };
            with(lists)
        })
    }
}

impl<'s, T> Operation<'s, T> for HazardOperation<'s, T> {
    type Store = HazardStore<T>;
    /// The node.
    type Slot = *mut Node<T>;

    #[inline]
    fn protect(&self, hazard: usize, link: &HazardLink<T>) -> *mut Node<T> {
        // Relaxed: loaded again once it is announced.
        let mut node = link.load(Ordering::Relaxed);
        loop {
            if node.is_null() {
                return node;
            }
            self.announce(hazard, node);
            // Acquire: pairs with the Release that published the node, in this use of it.
            let now = link.load(Ordering::Acquire);
            if now == node {
                return node;
            }
            node = now;
        }
    }

    #[inline]
    fn announce(&self, hazard: usize, pointer: *mut Node<T>) {
        self.announced.set(self.announced.get().max(hazard + 1));
        // Release: pairs with a scan's Acquire, for the node that was announced here before.
        self.record.hazards[hazard].store(pointer, Ordering::Release);
        // Either a scan sees the announcement, or the caller sees that the node is retired.
        RETIREMENT.light();
    }

    #[inline]
    fn allocate(&self, value: T) -> *mut Node<T> {
        let node = self.allocate_empty();
        // SAFETY: the node is owned.
        let storage = unsafe { &(*node).value };
        storage.with_mut(|storage| {
            // SAFETY: as above.
            let storage = unsafe { &mut *storage };
            storage.write(value);
        });
        node
    }

    #[inline]
    fn allocate_empty(&self) -> *mut Node<T> {
        let Some(node) = self.lists(|lists| lists.ready.pop()) else { return make() };
        // SAFETY: the node was ready to be used again, so it is owned now.
        let next = unsafe { &(*node).next };
        // Relaxed: the node is owned. The thread that publishes it does so with Release.
        next.store(ptr::null_mut(), Ordering::Relaxed);
        node
    }

    #[inline]
    unsafe fn next(&self, pointer: *mut Node<T>) -> &HazardLink<T> {
        // SAFETY: the node is protected or owned, so it is there for as long as the operation.
        unsafe { &(*pointer).next }
    }

    #[inline]
    unsafe fn slot(&self, pointer: *mut Node<T>) -> *mut Node<T> {
        pointer
    }

    #[inline]
    unsafe fn take(&self, slot: *mut Node<T>) -> T {
        // SAFETY: the operation has protected the node.
        let storage = unsafe { &(*slot).value };
        storage.with_mut(|storage| {
            // SAFETY: the caller's exchange gave it the value.
            let storage = unsafe { &*storage };
            // SAFETY: as above; no thread takes it again.
            unsafe { storage.assume_init_read() }
        })
    }

    #[inline]
    unsafe fn value(&self, slot: *mut Node<T>) -> *mut T {
        // SAFETY: the node is linked, so it is there.
        let storage = unsafe { &(*slot).value };
        storage.with_mut(|storage| storage.cast())
    }

    #[inline]
    unsafe fn retire(&self, pointer: *mut Node<T>, _slot: *mut Node<T>) {
        self.lists(|lists| {
            lists.retired.push(pointer);
            if lists.retired.len() >= lists.limit {
                self.store.scan(lists);
            }
        });
    }

    #[inline]
    unsafe fn discard(&self, pointer: *mut Node<T>) {
        self.lists(|lists| {
            if lists.ready.len() < Lists::<T>::READY {
                lists.ready.push(pointer);
            } else {
                // SAFETY: the caller owns it, and no other thread looks at it.
                unsafe { free(pointer) };
            }
        });
    }
}

impl<T> HazardOperation<'_, T> {
    /// Returns an owned node with a null next. `put` makes its value at its final address: a large
    /// value would not fit the stack.
    pub(crate) fn allocate_with(&self, put: impl FnOnce(*mut T)) -> *mut Node<T> {
        let node = self.allocate_empty();
        // SAFETY: the node is owned.
        let storage = unsafe { &(*node).value };
        storage.with_mut(|storage| put(storage.cast()));
        node
    }

    /// Returns the address of a node's value, for a structure that shares values while their
    /// nodes are linked.
    ///
    /// # Safety
    ///
    /// The node of `pointer` is protected or owned, and was allocated with a value.
    #[inline]
    pub(crate) unsafe fn look(&self, pointer: *mut Node<T>) -> *const T {
        // SAFETY: the node is there, by the caller's promise.
        let storage = unsafe { &(*pointer).value };
        storage.with(|storage| storage.cast::<T>())
    }
}

impl<T> Drop for HazardOperation<'_, T> {
    #[inline]
    fn drop(&mut self) {
        for hazard in &self.record.hazards[..self.announced.get()] {
            // Release: pairs with a scan's Acquire: this thread is done with the node.
            hazard.store(ptr::null_mut(), Ordering::Release);
        }
        // Release: pairs with the Acquire of the next guest.
        self.record.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
