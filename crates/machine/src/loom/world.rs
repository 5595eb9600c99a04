//! What one execution of a model owns.
//!
//! Why a pool of objects: `lock_api` demands `const INIT`, and loom's atomics cannot be made in a constant. Making them on
//! first touch is wrong, because the toucher would count as the creator and everyone else's access as unordered with
//! the creation. So every execution begins by making a pool of zeroed objects, before any thread is spawned; an atomic built by
//! `const fn new(initial)` claims one on first touch and stores `value - initial` in it, so that the pool's zero reads as `initial`.
//!
//! # Invariants
//!
//! 1. An execution runs on one operating-system thread (loom switches coroutines), so plain cells suffice here.
//! 2. The pool is made before the first spawn: its creation happens before every access.
//! 3. A claim is good for the execution that made it and no other: it carries the execution's number.

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU64 as RealAtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::Vec;

use super::atomic::Watched;
use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// A thread's label: the same in every interleaving, because it comes from who spawned it and as which child.
pub(super) type Label = u64;

const MAIN: Label = 1;

/// Which choice of which thread goes which way; what it does not mention goes the ordinary way, `false`.
pub(super) type Script = BTreeMap<(Label, usize), bool>;

/// The choices that an exploration came across.
pub(super) type Asked = Arc<Mutex<BTreeSet<(Label, usize)>>>;

/// The bounds of an execution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) objects: usize,
    pub(super) choices: usize,
    pub(super) weak_failures: usize,
    /// What is done apart is explored.
    pub(super) apart: bool,
}

pub(super) struct World {
    number: u64,
    limits: Limits,
    pub(super) bytes: Pool<Watched<AtomicU8>>,
    pub(super) words: Pool<Watched<AtomicU32>>,
    pub(super) longs: Pool<Watched<AtomicU64>>,
    pub(super) cells: Pool<loom::cell::UnsafeCell<()>>,
    script: Script,
    asked: Asked,
    threads: RefCell<HashMap<loom::thread::ThreadId, Thread>>,
    weak_failures: Cell<usize>,
    pub(super) parked: super::park::Parked,
}

#[derive(Clone, Copy)]
struct Thread {
    label: Label,
    index: usize,
    children: u64,
    choices: usize,
}

std::thread_local! {
    static CURRENT: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

impl World {
    /// Begins an execution. The last one's world is dropped: nothing of loom's in it minds being dropped late.
    pub(super) fn begin(limits: Limits, script: Script, asked: Asked) {
        static EXECUTIONS: RealAtomicU64 = RealAtomicU64::new(1);
        let world = World {
            // Relaxed: only uniqueness matters.
            number: EXECUTIONS.fetch_add(1, Ordering::Relaxed),
            limits,
            bytes: Pool::new(limits.objects, || Watched::new(AtomicU8::new(0))),
            words: Pool::new(limits.objects, || Watched::new(AtomicU32::new(0))),
            longs: Pool::new(limits.objects, || Watched::new(AtomicU64::new(0))),
            cells: Pool::new(limits.objects, || loom::cell::UnsafeCell::new(())),
            script,
            asked,
            threads: RefCell::default(),
            weak_failures: Cell::new(limits.weak_failures),
            parked: super::park::Parked::new(),
        };
        let world = Rc::new(world);
        world.enroll(MAIN);
        CURRENT.set(Some(world));
    }

    /// The execution this coroutine belongs to.
    pub(super) fn current() -> Rc<World> {
        CURRENT.with_borrow(|world| {
            world.clone().expect(
                "an object of loom's machine was touched outside `machine::model`; \
                 wrap the test's body in `machine::model(|| ...)`",
            )
        })
    }

    /// The next label for a child of this thread.
    pub(super) fn child_label(&self) -> Label {
        let mut threads = self.threads.borrow_mut();
        let Some(thread) = threads.get_mut(&loom::thread::current().id()) else { return 0 };
        thread.children += 1;
        thread.label * 8 + thread.children
    }

    /// Makes the running thread known under `label`.
    pub(super) fn enroll(&self, label: Label) {
        let mut threads = self.threads.borrow_mut();
        let index = threads.len();
        let thread = Thread { label, index, children: 0, choices: 0 };
        threads.insert(loom::thread::current().id(), thread);
    }

    /// The running thread's place in the order of arrival.
    pub(super) fn index(&self) -> Option<usize> {
        Some(self.threads.borrow().get(&loom::thread::current().id())?.index)
    }

    pub(super) fn explores_apart(&self) -> bool {
        self.limits.apart
    }

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
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(position);
        self.script.get(&position).copied().unwrap_or(false)
    }

    /// Whether this `compare_exchange_weak` fails for no reason.
    pub(super) fn weak_failure(&self) -> bool {
        let left = self.weak_failures.get();
        let fails = left > 0 && self.choice();
        if fails {
            self.weak_failures.set(left - 1);
        }
        fails
    }
}

/// The claim of a const-built object on one of a pool: which execution's, and which.
#[derive(Debug)]
pub(super) struct Claim(RealAtomicU64);

impl Claim {
    pub(super) const fn new() -> Self {
        Self(RealAtomicU64::new(0))
    }
}

/// Objects that were there before the first thread.
pub(super) struct Pool<T> {
    objects: Vec<T>,
    claimed: Cell<usize>,
}

/// Room for the place in a claim, below the execution's number.
const PLACE_BITS: u32 = 16;

impl<T> Pool<T> {
    fn new(count: usize, make: impl Fn() -> T) -> Self {
        Self { objects: (0..count).map(|_| make()).collect(), claimed: Cell::new(0) }
    }

    /// The object that `claim` stands for in the execution `world`, claiming one on first touch.
    pub(super) fn claimed(&self, claim: &Claim, world: &World) -> &T {
        // Relaxed: only one coroutine of one execution runs at a time (Invariant 1), and a claim of another execution is
        // recognized by its number (Invariant 3).
        let held = claim.0.load(Ordering::Relaxed);
        let place = if held >> PLACE_BITS == world.number {
            (held & ((1 << PLACE_BITS) - 1)) as usize
        } else {
            let place = self.claimed.replace(self.claimed.get() + 1);
            claim.0.store(world.number << PLACE_BITS | place as u64, Ordering::Relaxed);
            place
        };
        self.objects.get(place).unwrap_or_else(|| {
            panic!(
                "this model touches more than {} objects of one kind made by a `const fn new`; \
                 raise the room with `Model::objects`, or make them with `Fresh::fresh`",
                self.objects.len()
            )
        })
    }
}
