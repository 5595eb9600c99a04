//! A model of the paper's user-level threads on the simulated machine: FastThreads, over kernel
//! threads or over activations, with the costs that the paper measured.
//!
//! A user-level thread is a coroutine. A virtual processor takes one from the ready list, runs it
//! until it ends or waits for another, and takes the next. The two systems differ only in what a
//! virtual processor is:
//!
//! - *Over kernel threads* it is a kernel thread, and there are as many as processors. A thread
//!   that waits in the kernel takes its virtual processor along. If nothing is ready, the virtual
//!   processor looks again and again.
//! - *On activations* it is whatever activation the kernel has made for an upcall. If a thread
//!   waits in the kernel, another activation goes on with the others. If nothing is ready, the
//!   virtual processor looks for a while, then gives the processor back.
//!
//! On activations the ready list holds stopped activations too. A thread that was preempted or has
//! unblocked is in the middle of an activation, and goes on with it ([`Next::Resume`]). The upcalls
//! are the paper's, each with its cost from the description of the machine.
//!
//! The scheduler's own sections take no lock here, so no thread is ever preempted in one. The paper
//! makes its sections safe by recovery, which costs nothing while no thread is preempted. Over
//! kernel threads the omission flatters user-level threads. The paper does not say how long the
//! sections are; a counterfactual run sweeps it ([`Costs::locked`]).
//!
//! # Invariants
//!
//! 1. All threads of a run are on one thread of this computer, and between two calls of the
//!    simulator nothing else happens. So cells are enough.
//! 2. A fiber is in one place: on a virtual processor, in the ready list, or with the fiber that
//!    will make it ready. A fiber that puts itself there leaves its coroutine before the simulator
//!    is called again.
//! 3. `join` does not return before the other half has ended. So the other half may borrow from the
//!    caller.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use lock_api::RawMutex;
use sim_applications::nbody::Fork;
use stanchion_simulator::ThreadId;
use stanchion_simulator::inside::{self, Local};
use stanchion_simulator::os::activations::{Next, Space, Upcall};

/// Bytes of a user-level thread's stack.
const STACK: usize = 128 << 10;

/// The time between two looks of a virtual processor that has nothing to do, in nanoseconds.
const LOOK_NS: u64 = 100_000;

/// The time for a free lock, in nanoseconds. Estimated: a test-and-set, a store and the calls
/// around them.
const LOCK_NS: u64 = 10_000;

/// The time between two looks at a lock that is taken, in nanoseconds: some fifteen instructions.
const SPIN_NS: u64 = 5_000;

/// The time that an idle processor looks for work, in nanoseconds. "For a short period", the paper
/// says: it is a twentieth of a quantum.
const PATIENCE_NS: u64 = 5_000_000;

/// The costs of operations on the paper's machine, in nanoseconds: inputs, not results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Null Fork.
    pub(super) fork: u64,
    /// Signal-Wait. The signaller pays one half, the waiter the other.
    pub(super) signal_wait: u64,
    /// Taking a free lock and giving it back.
    pub(super) lock: u64,
    /// The time that an idle processor on activations looks for work before it goes back to the
    /// kernel.
    pub(super) patience: u64,
    /// The percentage of a fork, or of a signal and wait, for which the thread holds the lock of
    /// the ready list.
    pub(super) locked: u64,
}

impl Costs {
    /// User-level threads over kernel threads, by table IV of the paper.
    pub(super) const USER: Self =
        Self { fork: 34_000, signal_wait: 37_000, lock: LOCK_NS, patience: PATIENCE_NS, locked: 0 };
    /// User-level threads on activations, by the same table.
    pub(super) const ACTIVATIONS: Self = Self { fork: 37_000, signal_wait: 42_000, ..Self::USER };
}

/// A thread that can go on.
enum Ready {
    Fiber(Rc<Fiber>),
    /// A stopped activation, in the middle of a fiber.
    Stopped(ThreadId),
}

/// A user-level thread.
struct Fiber {
    /// The stack and the state of execution; none while the fiber runs.
    coroutine: RefCell<Option<Coroutine<(), (), (), DefaultStack>>>,
    /// The handle by which the coroutine suspends itself; null until the coroutine has begun.
    yielder: Cell<*const Yielder<(), ()>>,
}

/// A program's user-level threads.
pub(super) struct Fibers {
    /// The queue of threads that can go on.
    ready: RefCell<VecDeque<Ready>>,
    /// Set once the main thread is over.
    ended: Cell<bool>,
    /// The charges for operations.
    costs: Costs,
    /// Set while a thread holds the lock of the ready list.
    is_locked: Cell<bool>,
    /// Virtual processors that look for work.
    idle: Cell<usize>,
    /// The address space and the most processors it may have; none over kernel threads.
    space: Cell<Option<(Space, usize)>>,
}

/// A fiber and its program.
type Running = Option<(Rc<Fibers>, Rc<Fiber>)>;

/// The fiber that a virtual thread runs, if it runs one.
static CURRENT: Local<RefCell<Running>> = Local::new(RefCell::default);

fn running() -> Running {
    CURRENT.with(|current| current.borrow().clone())
}

/// Returns the fiber that runs, and its program.
fn current() -> (Rc<Fibers>, Rc<Fiber>) {
    running().expect("a user-level thread runs")
}

/// Hands this fiber to `keep`, and leaves the processor until the fiber is made ready.
fn suspend(keep: impl FnOnce(Rc<Fiber>)) {
    let (_, fiber) = current();
    let yielder = fiber.yielder.get();
    keep(fiber);
    // SAFETY: the yielder is on the stack of the coroutine that runs here, which lives as long as
    // it does.
    let yielder = unsafe { &*yielder };
    yielder.suspend(());
}

impl Fibers {
    /// Makes a program without threads.
    pub(super) fn new(costs: Costs) -> Rc<Self> {
        Rc::new(Self {
            ready: RefCell::default(),
            ended: Cell::new(false),
            costs,
            is_locked: Cell::new(false),
            idle: Cell::new(0),
            space: Cell::new(None),
        })
    }

    /// Runs `main` as the first user-level thread, on `processors` kernel threads.
    pub(super) fn over_threads(self: &Rc<Self>, processors: usize, main: impl FnOnce() + 'static) {
        self.begin(main);
        for _ in 0..processors {
            let own = Rc::clone(self);
            let serve = move || {
                own.serve();
            };
            inside::spawn(None, None, Box::new(serve));
        }
    }

    /// Runs `main` as the first user-level thread, on the activations of an address space of its
    /// own.
    pub(super) fn on_activations(
        self: &Rc<Self>,
        processors: usize,
        main: impl FnOnce() + 'static,
    ) {
        self.begin(main);
        let own = Rc::clone(self);
        let space = Space::new("user-level threads", 0, 1, move |events| own.handle(events));
        self.space.set(Some((space, processors)));
    }

    /// Spends the time of an operation on threads, a part of it with the lock of the ready list. A
    /// thread that finds the lock taken spins.
    fn operate(&self, nanos: u64) {
        let locked = nanos * self.costs.locked / 100;
        inside::work(nanos - locked);
        if locked > 0 {
            // Each look and each change comes in its turn in virtual time.
            inside::fence();
            while self.is_locked.replace(true) {
                inside::work(SPIN_NS);
                inside::fence();
            }
            inside::work(locked);
            inside::fence();
            self.is_locked.set(false);
        }
    }

    fn begin(self: &Rc<Self>, main: impl FnOnce() + 'static) {
        let own = Rc::clone(self);
        let main = move || {
            main();
            own.ended.set(true);
        };
        self.ready.borrow_mut().push_back(Ready::Fiber(Fiber::new(Box::new(main))));
    }

    /// Handles an upcall, then serves as a virtual processor.
    fn handle(self: &Rc<Self>, events: &[Upcall]) -> Next {
        for event in events {
            if let Upcall::Preempted(stopped) | Upcall::Unblocked(stopped) = event {
                self.ready.borrow_mut().push_front(Ready::Stopped(*stopped));
            }
        }
        self.serve()
    }

    /// Serves as a virtual processor, until the program has ended or there is something else to do
    /// with the processor.
    fn serve(self: &Rc<Self>) -> Next {
        let mut looked = 0;
        loop {
            let next = self.ready.borrow_mut().pop_front();
            match next {
                Some(Ready::Fiber(fiber)) => {
                    looked = 0;
                    self.run(fiber);
                }
                Some(Ready::Stopped(activation)) => return Next::Resume(activation),
                None if self.ended.get() => break,
                None if self.space.get().is_some() && looked >= self.costs.patience => break,
                None => {
                    self.idle.set(self.idle.get() + 1);
                    inside::work(LOOK_NS);
                    self.idle.set(self.idle.get() - 1);
                    looked += LOOK_NS;
                }
            }
        }
        Next::Idle
    }

    fn run(self: &Rc<Self>, fiber: Rc<Fiber>) {
        let mut coroutine = fiber.coroutine.take().expect("invariant 2");
        CURRENT.with(|current| current.replace(Some((Rc::clone(self), Rc::clone(&fiber)))));
        let result = coroutine.resume(());
        CURRENT.with(RefCell::take);
        if matches!(result, CoroutineResult::Yield(())) {
            *fiber.coroutine.borrow_mut() = Some(coroutine);
        }
    }

    /// Appends `fiber` to the ready list, and requests a processor if none is idle.
    fn make_ready(&self, fiber: Rc<Fiber>) {
        self.ready.borrow_mut().push_back(Ready::Fiber(fiber));
        // "Add more processors": only if those that it has are all busy.
        if let Some((space, most)) = self.space.get()
            && self.idle.get() == 0
            && space.wanted() < most
        {
            space.request(1);
        }
    }
}

impl Fiber {
    fn new(body: Box<dyn FnOnce()>) -> Rc<Self> {
        let fiber =
            Rc::new(Self { coroutine: RefCell::default(), yielder: Cell::new(core::ptr::null()) });
        let own = Rc::downgrade(&fiber);
        let stack = DefaultStack::new(STACK).expect("memory for a stack");
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            if let Some(own) = own.upgrade() {
                own.yielder.set(yielder);
            }
            body();
        });
        *fiber.coroutine.borrow_mut() = Some(coroutine);
        fiber
    }
}

/// Forks user-level threads of the caller's program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnFibers;

impl Fork for OnFibers {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let (program, _) = current();
        let (result, waiter) = (Cell::new(None), RefCell::new(None::<Rc<Fiber>>));
        let half = || {
            let done = catch_unwind(AssertUnwindSafe(other));
            current().0.operate(current().0.costs.signal_wait / 2);
            result.set(Some(done));
            let waiter = waiter.borrow_mut().take();
            if let Some(waiter) = waiter {
                current().0.make_ready(waiter);
            }
        };
        let half: Box<dyn FnOnce() + '_> = Box::new(half);
        // SAFETY: only the lifetime changes, and invariant 3 keeps what it borrows.
        let half = unsafe {
            core::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce() + 'static>>(half)
        };
        program.operate(program.costs.fork);
        program.make_ready(Fiber::new(half));
        let here = catch_unwind(AssertUnwindSafe(one));
        program.operate(program.costs.signal_wait / 2);
        let there = loop {
            match result.take() {
                Some(there) => break there,
                None => suspend(|fiber| *waiter.borrow_mut() = Some(fiber)),
            }
        };
        match (here, there) {
            (Ok(here), Ok(there)) => (here, there),
            (Err(panic), _) | (_, Err(panic)) => resume_unwind(panic),
        }
    }
}

/// Runs two user-level threads of the caller's program until both have ended.
pub(super) fn both(one: impl FnOnce() + 'static, other: impl FnOnce() + 'static) {
    let (program, _) = current();
    let ended = Rc::new(Cell::new(false));
    let told = Rc::clone(&ended);
    let half = move || {
        other();
        told.set(true);
    };
    inside::work(program.costs.fork);
    program.make_ready(Fiber::new(Box::new(half)));
    one();
    while !ended.get() {
        inside::work(LOOK_NS);
        // No processor is asked for here: by invariant 2 that would be too early.
        suspend(|fiber| program.ready.borrow_mut().push_back(Ready::Fiber(fiber)));
    }
}

/// A lock for user-level threads. A thread that finds it taken lets the others run.
pub(super) struct FiberLock {
    /// Set while a fiber has the lock.
    held: Cell<bool>,
    /// The fibers that wait for the lock, in order of arrival.
    waiters: RefCell<VecDeque<Rc<Fiber>>>,
}

// SAFETY: by invariant 1 all its users are on one thread of this computer.
unsafe impl Sync for FiberLock {}
// SAFETY: as above.
unsafe impl Send for FiberLock {}

// SAFETY: `held` is read and set without a call of the simulator in between, so by invariant 1 one
// fiber has the lock at a time.
unsafe impl RawMutex for FiberLock {
    const INIT: Self = Self { held: Cell::new(false), waiters: RefCell::new(VecDeque::new()) };
    type Guard = ();

    fn lock(&self) {
        inside::work(current().0.costs.lock);
        while self.held.get() {
            suspend(|fiber| self.waiters.borrow_mut().push_back(fiber));
        }
        self.held.set(true);
    }

    fn try_lock(&self) -> Option<()> {
        (!self.held.replace(true)).then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        self.held.set(false);
        let waiter = self.waiters.borrow_mut().pop_front();
        if let Some(waiter) = waiter {
            let (program, _) = current();
            program.operate(program.costs.signal_wait / 2);
            program.make_ready(waiter);
        }
    }

    fn is_locked(&self) -> bool {
        self.held.get()
    }
}
