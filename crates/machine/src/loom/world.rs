//! The state of one execution of a model.
//!
//! Why a pool of objects: `lock_api` demands `const INIT`, and loom's atomics cannot be made in a
//! constant. Making them at their first use is wrong: the thread of that use would count as the
//! creator, and every other thread's use as unordered with the creation. So every execution begins
//! by making a pool of zeroed objects, before any thread is spawned. An atomic made by
//! `const fn new(initial)` claims one at its first use and stores `value - initial` in it, so that
//! the pool's zero reads as `initial`.
//!
//! Objects that are never claimed would be most of an execution's work. So after its first
//! execution, an exploration makes about twice as many objects as were claimed; see [`PoolSizes`].
//!
//! An atomic that is made while threads run needs more: every use of a claimed object is checked
//! against the [moment](super::memory) of the memory in which it lies.
//!
//! # Invariants
//!
//! 1. An execution runs on one operating-system thread (loom switches coroutines), so plain cells
//!    suffice here.
//! 2. The pool is made before the first spawn: its creation happens before every access. An
//!    exploration in which one was made later is not believed; see [`PoolSizes`].
//! 3. A claim is good for the execution that made it and no other: it carries the execution's
//!    number.

use core::cell::{Cell, RefCell};
use core::ops::Deref;
use core::panic::Location;
use core::sync::atomic::{AtomicU64 as RealAtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use super::memory::{Memory, Moment};
use super::parked::Parked;
use super::watched::Watched;
use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// A thread's label: the same in every interleaving, because it comes from the label of the thread
/// that spawned it and from how many it had spawned before.
pub(super) type Label = u64;

const MAIN: Label = 1;

/// The way that each choice of each thread goes. A choice that is not in it goes the ordinary way,
/// `false`.
pub(super) type Script = BTreeMap<(Label, usize), bool>;

/// The choices that an exploration came across.
pub(super) type Asked = Arc<Mutex<BTreeSet<(Label, usize)>>>;

/// The number of kinds of objects that have a pool.
const KINDS: usize = 4;

/// The number of objects in the pools of the next execution, learned from those before.
///
/// A pool that is too small for an execution grows while threads run. The thread of the first use
/// then counts as the creator (Invariant 2), so the exploration may report a race that is none.
/// `Model::check` ignores its outcome and explores anew with [`PoolSizes::full`]. Code that aborts
/// where it may not unwind would end the process at such a report, so the pools have spare objects.
/// Few models of this workspace make a pool grow, and none of these reports anything.
#[derive(Debug)]
pub(super) struct PoolSizes {
    /// The objects of each kind, at most `most`.
    each: [usize; KINDS],
    /// The most objects of a kind that an execution may claim.
    most: usize,
    /// True until an execution has said how many objects it claims.
    unknown: bool,
    /// True if `each` never changes.
    fixed: bool,
    /// True once a pool was too small.
    pub(super) exceeded: bool,
}

impl PoolSizes {
    /// Returns sizes that begin at `most` for each kind, and are learned after an execution.
    pub(super) fn learning(most: usize) -> Self {
        Self { each: [most; KINDS], most, unknown: true, fixed: false, exceeded: false }
    }

    /// Returns sizes that are `most` for each kind in every execution.
    pub(super) fn full(most: usize) -> Self {
        Self { fixed: true, ..Self::learning(most) }
    }

    /// Learns from an execution that has claimed so many objects of each kind.
    fn learn(&mut self, claimed: [usize; KINDS]) {
        if self.fixed {
            return;
        }
        for (size, claimed) in self.each.iter_mut().zip(claimed) {
            // Another interleaving may claim more: a thread that has to wait, for instance.
            let wanted = (2 * claimed + 4).min(self.most);
            *size = if self.unknown { wanted } else { wanted.max(*size) };
        }
        self.unknown = false;
    }
}

/// The bounds of an execution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The most objects of each kind made by a `const fn new`.
    pub(super) objects: usize,
    /// The number of choices of each thread that are explored.
    pub(super) choices: usize,
    /// The number of spurious failures of `compare_exchange_weak`.
    pub(super) weak_failures: usize,
    /// True if operations inside of `apart` are explored.
    pub(super) apart: bool,
}

/// The state of one execution. It belongs to the operating-system thread that runs the execution.
pub(super) struct World {
    /// The number of the execution, which no other one of the process has.
    number: u64,
    /// The bounds of the exploration.
    limits: Limits,
    /// The sizes of the pools of the exploration's executions. The present execution says if one
    /// was too small.
    sizes: Arc<Mutex<PoolSizes>>,
    /// The pool behind `AtomicU8`, and `AtomicBool`.
    pub(super) bytes: Pool<Watched<AtomicU8>>,
    /// The pool behind `AtomicU32`.
    pub(super) words: Pool<Watched<AtomicU32>>,
    /// The pool behind `AtomicU64`, `AtomicUsize` and `AtomicPtr`.
    pub(super) longs: Pool<Watched<AtomicU64>>,
    /// The pool behind `UnsafeCell`.
    pub(super) cells: Pool<loom::cell::UnsafeCell<()>>,
    /// The way that each choice goes in this execution.
    script: Script,
    /// The choices that came up. Each thread adds its own.
    asked: Asked,
    /// The model's threads that have begun, by loom's names for them.
    threads: RefCell<HashMap<loom::thread::ThreadId, Thread>>,
    /// The number of spurious failures that are left.
    weak_failures: Cell<usize>,
    /// The sleepers of the model's futex.
    pub(super) parked: Parked,
    /// The moments of the memory that the model's threads use.
    pub(super) memory: Memory,
}

/// Locks what no execution leaves half done, also if it has failed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread of the model.
#[derive(Clone, Copy)]
struct Thread {
    /// Its label, the same in every interleaving.
    label: Label,
    /// Its position in the order in which the threads began.
    index: usize,
    /// The number of threads that it has spawned.
    children: u64,
    /// The number of choices that it has met.
    choices: usize,
}

std::thread_local! {
    /// The present execution of this operating-system thread, or the last one.
    static CURRENT: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

impl World {
    /// Begins an execution. `first_frame` is an address in the first frame of the running thread.
    /// The last execution's world is dropped here: none of loom's objects in it is harmed by being
    /// dropped late.
    pub(super) fn begin(
        limits: Limits,
        sizes: &Arc<Mutex<PoolSizes>>,
        script: Script,
        asked: Asked,
        first_frame: *const (),
    ) {
        static EXECUTIONS: RealAtomicU64 = RealAtomicU64::new(1);
        CURRENT.with_borrow(|last| {
            if let Some(last) = last {
                // What this execution makes is not of the last one's memory.
                last.memory.ignore();
                if Arc::ptr_eq(&last.sizes, sizes) {
                    lock(sizes).learn(last.claimed());
                }
            }
        });
        let [bytes, words, longs, cells] = lock(sizes).each;
        let world = World {
            // Relaxed: only uniqueness matters.
            number: EXECUTIONS.fetch_add(1, Ordering::Relaxed),
            limits,
            sizes: Arc::clone(sizes),
            bytes: Pool::new(bytes, || Watched::new(AtomicU8::new(0))),
            words: Pool::new(words, || Watched::new(AtomicU32::new(0))),
            longs: Pool::new(longs, || Watched::new(AtomicU64::new(0))),
            cells: Pool::new(cells, || loom::cell::UnsafeCell::new(())),
            script,
            asked,
            threads: RefCell::default(),
            weak_failures: Cell::new(limits.weak_failures),
            parked: Parked::new(),
            memory: Memory::default(),
        };
        let world = Rc::new(world);
        world.enroll(MAIN, first_frame);
        // SAFETY: the `Rc` does not move its world, and the world's `drop` ends this.
        unsafe { world.memory.observe() };
        CURRENT.set(Some(world));
    }

    /// Returns the number of objects of each kind that were claimed.
    fn claimed(&self) -> [usize; KINDS] {
        [
            self.bytes.claimed.get(),
            self.words.claimed.get(),
            self.longs.claimed.get(),
            self.cells.claimed.get(),
        ]
    }

    /// Returns the execution that this coroutine belongs to.
    pub(super) fn current() -> Rc<World> {
        CURRENT.with_borrow(|world| {
            world.clone().expect(
                "an object of loom's machine was touched outside `stanchion_machine::model`; \
                 wrap the test's body in `stanchion_machine::model(|| ...)`",
            )
        })
    }

    /// Returns the execution that this coroutine belongs to, if any.
    pub(super) fn try_current() -> Option<Rc<World>> {
        CURRENT.with_borrow(Clone::clone).filter(|world| world.memory.is_of_this_stack())
    }

    /// Returns the next label for a child of this thread.
    pub(super) fn child_label(&self) -> Label {
        let mut threads = self.threads.borrow_mut();
        let Some(thread) = threads.get_mut(&loom::thread::current().id()) else { return 0 };
        thread.children += 1;
        thread.label * 8 + thread.children
    }

    /// Makes the running thread known under `label`. `first_frame` is an address in its first
    /// frame.
    pub(super) fn enroll(&self, label: Label, first_frame: *const ()) {
        self.memory.add_thread(first_frame);
        let mut threads = self.threads.borrow_mut();
        let index = threads.len();
        let thread = Thread { label, index, children: 0, choices: 0 };
        threads.insert(loom::thread::current().id(), thread);
    }

    /// Returns the running thread's position in the order in which the threads began.
    pub(super) fn index(&self) -> Option<usize> {
        Some(self.threads.borrow().get(&loom::thread::current().id())?.index)
    }

    pub(super) fn explores_apart(&self) -> bool {
        self.limits.apart
    }

    /// Returns whether the running thread's next choice goes the other way than usual.
    pub(super) fn choice(&self) -> bool {
        let position = {
            let mut threads = self.threads.borrow_mut();
            let Some(thread) = threads.get_mut(&loom::thread::current().id()) else { return false };
            thread.choices += 1;
            (thread.label, thread.choices - 1)
        };
        if position.1 >= self.limits.choices {
            return false;
        }
        lock(&self.asked).insert(position);
        self.script.get(&position).copied().unwrap_or(false)
    }

    /// Returns whether this `compare_exchange_weak` fails for no reason.
    pub(super) fn weak_failure(&self) -> bool {
        let left = self.weak_failures.get();
        let fails = left > 0 && self.choice();
        if fails {
            self.weak_failures.set(left - 1);
        }
        fails
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.memory.ignore();
    }
}

/// Records that the running thread did something from which another thread can learn. Only the
/// moments of [`memory`](super::memory) depend on it.
pub(super) fn published() {
    // Without a world, other code than `stanchion_machine::model` started loom. There `fresh`
    // works.
    if let Some(world) = CURRENT.with_borrow(Clone::clone) {
        world.memory.published();
    }
}

/// The claim of an object made by `new` on an object of a pool.
#[derive(Debug)]
pub(super) struct Claim {
    /// The number of the execution in the high bits, and the position in the pool in the low ones.
    /// The thread that uses the object first writes it.
    held: RealAtomicU64,
    /// The place in the source where `new` was called.
    made: &'static Location<'static>,
}

impl Claim {
    #[track_caller]
    pub(super) const fn new() -> Self {
        Self { held: RealAtomicU64::new(0), made: Location::caller() }
    }

    /// Returns whether the object has been used in the execution `world`.
    pub(super) fn is_of(&self, world: &World) -> bool {
        self.place(world).is_some()
    }

    /// Returns the position in the pool, if the claim was made in the execution `world`.
    fn place(&self, world: &World) -> Option<usize> {
        // Relaxed: only one coroutine of one execution runs at a time (Invariant 1), and a claim of
        // another execution is recognized by its number (Invariant 3).
        let held = self.held.load(Ordering::Relaxed);
        (held >> PLACE_BITS == world.number).then_some((held & ((1 << PLACE_BITS) - 1)) as usize)
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Checks that the running thread may know of the object, given the moment of its memory.
    #[track_caller]
    fn check(&self, moment: Option<&Moment>) {
        // A failing execution unwinds through here. Its first report is the one that counts.
        if std::thread::panicking() {
            return;
        }
        if let Some(maker) = moment.and_then(Moment::missed) {
            panic!(
                "Causality violation: the object made by `new` at {} is used at {}, and nothing \
                 orders that use after its creation.\nThread {maker} of the model (thread 0 runs \
                 the body) got the object's memory, and the running thread has not synchronized \
                 with it since: the object was published, or found, by too weak an ordering. The \
                 docs of `stanchion_machine::checking` say how such objects are checked, and which \
                 to make by `Fresh::fresh`.",
                self.made,
                Location::caller(),
            );
        }
    }

    /// Checks that the running thread may know of the object, without claiming one of a pool.
    #[track_caller]
    pub(super) fn check_unclaimed(&self, world: &World) {
        self.check(world.memory.moment_of(self.address()).as_deref());
    }
}

/// A pool of objects that are made before the first thread.
pub(super) struct Pool<T> {
    /// All objects; the claimed ones come first.
    objects: RefCell<Vec<Rc<Pooled<T>>>>,
    /// Makes an object.
    make: fn() -> T,
    /// The number of claimed objects.
    claimed: Cell<usize>,
}

/// An object of a pool, and the address of the object that has claimed it.
pub(super) struct Pooled<T> {
    /// The object of loom's.
    object: T,
    /// The address of the claim at its last use, and the moment of that memory.
    memory: RefCell<(usize, Option<Rc<Moment>>)>,
}

impl<T> Pooled<T> {
    fn new(object: T) -> Rc<Self> {
        Rc::new(Self { object, memory: RefCell::default() })
    }
}

impl<T> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

/// The number of bits for the position in a claim, below the execution's number.
const PLACE_BITS: u32 = 16;

impl<T> Pool<T> {
    fn new(count: usize, make: fn() -> T) -> Self {
        let objects = (0..count).map(|_| Pooled::new(make())).collect();
        Self { objects: RefCell::new(objects), make, claimed: Cell::new(0) }
    }

    /// Returns the object at `place`, and makes it if the pool is too small for this execution.
    /// Returns `None` if the exploration has no room for it.
    fn at(&self, place: usize, world: &World) -> Option<Rc<Pooled<T>>> {
        if let Some(object) = self.objects.borrow().get(place) {
            return Some(Rc::clone(object));
        }
        if place >= world.limits.objects {
            return None;
        }
        lock(&world.sizes).exceeded = true;
        let object = Pooled::new((self.make)());
        self.objects.borrow_mut().push(Rc::clone(&object));
        Some(object)
    }

    /// Returns the object that `claim` has claimed in the execution `world`, and claims one if
    /// there is none. Checks that the running thread may know of it.
    #[track_caller]
    pub(super) fn claimed(&self, claim: &Claim, world: &World) -> Rc<Pooled<T>> {
        let place = claim.place(world).unwrap_or_else(|| {
            let place = self.claimed.replace(self.claimed.get() + 1);
            // Relaxed: see `place`.
            claim.held.store(world.number << PLACE_BITS | place as u64, Ordering::Relaxed);
            place
        });
        let Some(object) = self.at(place, world) else {
            panic!(
                "this model touches more than {} objects of one kind made by a `const fn new`; \
                 raise the room with `Model::objects`, or make them with `Fresh::fresh` \
                 (this one was made at {})",
                world.limits.objects, claim.made,
            )
        };
        let moment = {
            let mut memory = object.memory.borrow_mut();
            // The object is new to the pool, or it has moved.
            if memory.0 != claim.address() {
                *memory = (claim.address(), world.memory.moment_of(claim.address()));
            }
            memory.1.clone()
        };
        claim.check(moment.as_deref());
        object
    }
}

/// The object of loom's that an operation uses.
pub(super) enum Object<'a, T> {
    /// An object made by `fresh`.
    Own(&'a T),
    /// A pool's object that an object made by `new` has claimed.
    Claimed(Rc<Pooled<T>>),
}

impl<T> Deref for Object<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Own(object) => object,
            Self::Claimed(object) => object,
        }
    }
}
