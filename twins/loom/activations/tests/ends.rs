//! Models of ends and of times: a scope is left when its threads have ended, a runtime ends when it has no thread any more, and somebody watches the clock.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `ends_of_a_scope` | a scope's body, its thread | the scope is left while its thread runs, or does not see what it did; nobody wakes the body |
//! | `ends_of_a_scope_of_two_bounded` | the same, with two threads | the same; the last one is not who wakes it |
//! | `ends_counted_here` | a carrier whose thread creates another one and ends, one that asks whether all have ended | all have, it says, before the second has begun |
//! | `ends_counted_there_bounded` | the same, where a third carrier runs the second thread | the same |
//! | `ends_counted_outside` | who spawns from outside and closes, a carrier that asks | the same, of the thread from outside |
//! | `ends_seen_by_one_of_two` | two carriers on which the last two threads end, and that go to sleep | neither says that all has ended |
//! | `ends_wake_who_waits_bounded` | who waits for the runtime's end, the carrier that ends it | it waits for ever |
//! | `ends_of_a_watch_bounded` | a carrier that watches the clock and has other things to do, one that goes to sleep | nobody watches |
//! | `ends_of_a_sleep_by_a_time_bounded` | a carrier that goes to sleep, who adds a time | nobody watches |
//!
//! The threads of a runtime are threads of loom here, as it does not switch stacks. Three models of two threads are bounded, because the lock of times and
//! closers is a mutex with a policy, whose every try is explored; what the two do under it is one step each. Every model prints `model NAME: N executions`.

#[path = "../../../../crates/activations/src/census.rs"]
#[allow(dead_code)]
mod census;
#[path = "../../../../crates/activations/src/join.rs"]
#[allow(dead_code, unreachable_pub)]
mod join;
#[path = "../../../../crates/activations/src/park.rs"]
#[allow(dead_code, unreachable_pub)]
mod park;
#[path = "../../../../crates/activations/src/scope.rs"]
#[allow(dead_code, unreachable_pub)]
mod scope;
#[path = "../../../../crates/activations/src/sleeping.rs"]
#[allow(dead_code, unreachable_pub)]
mod sleeping;
#[path = "common/threads.rs"]
#[allow(dead_code, unreachable_pub)]
mod threads;

use machine::Model;
use machine::atomic::{AtomicBool, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::sync::Arc;
use machine::thread::JoinHandle;

use census::{Census, Count};
use shared::Shared;
use sleeping::Sleeping;
use thread::yield_now;
use threads::{
    ending, handle, home, local, locals, packet, panics, priority, process, shares, stack, state,
    thread, timers,
};
use timers::Timers;

/// Nobody switches stacks here.
mod fiber {
    pub(crate) struct Fiber;
}

/// A runtime that has a kernel thread for each of its threads.
mod shared {
    use core::cell::RefCell;

    use machine::thread::JoinHandle;

    use crate::process::Process;
    use crate::thread::Thread;

    #[derive(Default)]
    pub(crate) struct Shared(RefCell<Vec<JoinHandle<()>>>);

    // SAFETY: only the model's first thread touches the list.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}

    impl Shared {
        pub(crate) fn process(&self) -> Process {
            Process::here()
        }

        pub(crate) fn keep(&self, thread: JoinHandle<()>) {
            self.0.borrow_mut().push(thread);
        }

        pub(crate) fn join(&self) {
            self.0.take().into_iter().for_each(|thread| thread.join().expect("no panic"));
        }
    }

    pub(crate) fn ready(_: Thread) {
        unreachable!("its threads do not park")
    }
}

mod birth {
    use core::mem::ManuallyDrop;
    use std::sync::Arc;

    use crate::home::Home;
    use crate::join::{Claim, JoinHandle};
    use crate::packet::Packet;
    use crate::scope::Bounds;
    use crate::shared::Shared;
    use crate::thread::Manner;

    pub(crate) fn spawn_here<F, T>(_: Manner, _: F) -> JoinHandle<T> {
        unreachable!("only scopes spawn here")
    }

    pub(crate) fn runtime_here(_: &str) -> Arc<Shared> {
        unreachable!("no thread of a model is a runtime's")
    }

    /// As in `birth.rs`, but the thread is loom's.
    ///
    /// # Safety
    ///
    /// As there.
    pub(crate) unsafe fn spawn_borrowing<'a, F, T>(
        shared: &Arc<Shared>,
        manner: Manner,
        scope: Option<Arc<Bounds>>,
        body: F,
    ) -> Claim<'a, T>
    where
        F: FnOnce() -> T + Send + 'a,
        T: Send + 'a,
    {
        // Loom does not see the standard library's counts of references: no share of the bounds is the last.
        core::mem::forget(scope.clone());
        let thread = Packet::thread(manner, Home::with(shared), scope, body);
        // SAFETY: it has just been made, of such a closure.
        let claim = unsafe { Claim::new(&thread, Packet::<F, T>::take) };
        shared.keep(machine::thread::spawn(move || {
            // SAFETY: once, and its own share is used up.
            unsafe { ManuallyDrop::new(thread).run() }.tell();
        }));
        claim
    }
}

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// What is done by one thread, and looked at by another when that has ended.
struct Payload(UnsafeCell<u32>);

// SAFETY: it is touched as the ends allow. The models check that.
unsafe impl Send for Payload {}
// SAFETY: as above.
unsafe impl Sync for Payload {}

impl Payload {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn change(&self) {
        // SAFETY: the one thread that does; the cell reports others.
        self.0.with_mut(|done| unsafe { *done += 1 });
    }

    fn is_changed(&self) -> bool {
        // SAFETY: that one has ended; if not, the cell reports it.
        self.0.with(|done| unsafe { *done == 1 })
    }
}

fn scope_of<const THREADS: usize>() {
    let shared = std::sync::Arc::new(Shared::default());
    let done = [(); THREADS].map(|()| Payload::new());
    scope::run(shared.clone(), |s| {
        for done in &done {
            core::mem::forget(s.spawn(|| done.change()));
        }
    });
    assert!(done.iter().all(Payload::is_changed));
    shared.join();
}

#[test]
fn ends_of_a_scope() {
    explore("ends_of_a_scope", Model::new().choices(0), scope_of::<1>);
}

#[test]
fn ends_of_a_scope_of_two_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("ends_of_a_scope_of_two_bounded", model, scope_of::<2>);
}

/// A runtime with a few carriers.
struct Runtime {
    census: Census,
    counts: Box<[Count]>,
    sleeping: Sleeping,
    timers: Timers,
    /// Whether the last thread can be run.
    ready: AtomicBool,
    /// What that does.
    done: Payload,
}

impl Runtime {
    fn new(carriers: usize) -> Arc<Self> {
        Arc::new(Self {
            census: Census::new(),
            counts: (0..carriers).map(|_| Count::new()).collect(),
            sleeping: Sleeping::new(2),
            timers: Timers::new(),
            ready: AtomicBool::fresh(false),
            done: Payload::new(),
        })
    }

    fn is_done(&self) -> bool {
        self.census.is_done(self.counts.iter())
    }

    fn make_ready(&self) {
        // Release: what a queue's lock does.
        self.ready.store(true, Ordering::Release);
    }

    fn is_ready(&self) -> bool {
        // Acquire: likewise.
        self.ready.load(Ordering::Acquire)
    }

    /// Runs the last thread on that carrier.
    fn run(&self, carrier: usize) {
        self.done.change();
        self.counts[carrier].end();
    }

    /// Who asks whether all have ended believes it.
    fn believe(&self) {
        if self.is_done() {
            assert!(self.done.is_changed(), "all have ended, and one has not begun");
        }
    }
}

fn beside(runtime: &Arc<Runtime>, body: impl FnOnce(&Runtime) + 'static) -> JoinHandle<()> {
    let runtime = runtime.clone();
    machine::thread::spawn(move || body(&runtime))
}

#[test]
fn ends_counted_here() {
    explore("ends_counted_here", Model::new().choices(0), || {
        let runtime = Runtime::new(1);
        runtime.census.creation_outside();
        runtime.census.close();
        let carrier = beside(&runtime, |runtime| {
            runtime.counts[0].creation();
            runtime.counts[0].end();
            runtime.run(0);
        });
        runtime.believe();
        carrier.join().expect("no panic");
        assert!(runtime.is_done());
    });
}

#[test]
fn ends_counted_there_bounded() {
    explore("ends_counted_there_bounded", Model::new().choices(0).preemptions(3), || {
        let runtime = Runtime::new(2);
        runtime.census.creation_outside();
        runtime.census.close();
        let creates = beside(&runtime, |runtime| {
            runtime.counts[1].creation();
            runtime.make_ready();
            runtime.counts[1].end();
        });
        let runs = beside(&runtime, |runtime| {
            if runtime.is_ready() {
                runtime.run(0);
            }
        });
        runtime.believe();
        creates.join().expect("no panic");
        runs.join().expect("no panic");
    });
}

#[test]
fn ends_counted_outside() {
    explore("ends_counted_outside", Model::new().choices(0), || {
        let runtime = Runtime::new(1);
        let carrier = beside(&runtime, |runtime| {
            runtime.believe();
            if runtime.is_ready() {
                runtime.run(0);
                runtime.believe();
            }
        });
        runtime.census.creation_outside();
        runtime.make_ready();
        runtime.census.close();
        carrier.join().expect("no panic");
    });
}

/// As a carrier does that has found nothing to do.
fn goes_to_sleep(runtime: &Runtime, carrier: usize) -> bool {
    runtime.counts[carrier].end();
    runtime.sleeping.announce(carrier, false);
    let (ended, created) = runtime.census.ended_and_created(runtime.counts.iter());
    ended == created
}

#[test]
fn ends_seen_by_one_of_two() {
    explore("ends_seen_by_one_of_two", Model::new().choices(0), || {
        let runtime = Runtime::new(2);
        (0..2).for_each(|_| runtime.census.creation_outside());
        let sees = Arc::new(AtomicBool::fresh(false));
        let other = {
            let sees = sees.clone();
            // Relaxed: joined before it is looked at.
            beside(&runtime, move |runtime| {
                sees.store(goes_to_sleep(runtime, 1), Ordering::Relaxed)
            })
        };
        let here = goes_to_sleep(&runtime, 0);
        other.join().expect("no panic");
        assert!(here || sees.load(Ordering::Relaxed), "both have gone to sleep");
    });
}

#[test]
fn ends_wake_who_waits_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("ends_wake_who_waits_bounded", model, || {
        let runtime = Runtime::new(0);
        let carrier = beside(&runtime, |runtime| runtime.census.end());
        runtime.census.wait_for_end();
        assert!(runtime.census.is_over());
        carrier.join().expect("no panic");
    });
}

/// Goes to sleep as a carrier does; comes back as who watches the clock.
fn watches(runtime: &Runtime, seat: usize) {
    loop {
        runtime.sleeping.announce(seat, false);
        let until = runtime.timers.watch(seat);
        if until != Deadline::NEVER {
            return runtime.sleeping.retract(seat);
        }
        runtime.sleeping.sleep(seat, until);
    }
}

#[test]
fn ends_of_a_watch_bounded() {
    explore("ends_of_a_watch_bounded", Model::new().choices(0).preemptions(3), || {
        let runtime = Runtime::new(0);
        runtime.timers.add(Deadline::PAST, thread::current());
        assert_ne!(runtime.timers.watch(0), Deadline::NEVER);
        let other = beside(&runtime, |runtime| watches(runtime, 1));
        if runtime.timers.unwatch(0) {
            runtime.sleeping.tell(1, false);
        }
        other.join().expect("no panic");
        assert!(runtime.timers.unwatch(1), "it is the watch, and there is a time");
    });
}

#[test]
fn ends_of_a_sleep_by_a_time_bounded() {
    let model = Model::new().choices(0).preemptions(3);
    explore("ends_of_a_sleep_by_a_time_bounded", model, || {
        let runtime = Runtime::new(0);
        let sleeper = beside(&runtime, |runtime| watches(runtime, 0));
        let (_, late) = runtime.timers.add(Deadline::PAST, thread::current());
        if late.watch {
            runtime.sleeping.tell(1, false);
        }
        sleeper.join().expect("no panic");
    });
}
