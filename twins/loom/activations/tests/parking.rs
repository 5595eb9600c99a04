//! Models of parking: a wake-up is not lost, and who goes on sees what was done before it, and has its stack.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `parking_woken_again` | a carrier whose thread parks and has a token, one that unparks it for another reason | the thread goes on for the first, and sleeps beside the second |
//! | `parking_woken_by_two_bounded` | the same, by two | the same; it is made ready twice |
//! | `parking_a_stack_is_handed_on` | the same, once, and the thread goes on where it was woken | the stack is not the one that was laid aside |
//! | `parking_a_stack_is_taken_by_who_wakes` | the same, and the thread goes on where it is woken | the same, in a queue that orders nothing |
//! | `parking_in_the_kernel` | a kernel thread that parks, one that unparks it | it sleeps on, or does not see what was done |
//! | `parking_in_the_kernel_bounded` | the same, where it is unparked twice | the same; the second is lost |
//! | `parking_in_the_kernel_for_a_time_bounded` | the same, with a time that may pass | a token is lost when both happen |
//! | `parking_until_a_thread_ends` | a thread that ends, who joins it | the joiner is not woken, or does not see the result |
//! | `parking_until_told_bounded` | the same, where the joiner is a user-level thread that may go on for something else, and ends | it is told when it is not there any more |
//! | `parking_until_the_end_is_seen` | the same, where the joiner only asks | the result is not seen |
//! | `parking_for_nobody` | a thread that ends, who drops its handle | both drop the result, or neither |
//! | `parking_until_a_time_bounded` | a carrier that looks at the times, one that unparks the thread itself | it is woken twice or not at all |
//!
//! Two threads are explored without bound where each does one thing. Where one unparks twice, or the lock of times, a mutex with a policy, is between
//! them, that did not end after 100 000 executions, and a bound is in the name. Every model prints `model NAME: N executions`.

#[path = "common/threads.rs"]
#[allow(dead_code, unreachable_pub)]
mod threads;

use core::mem::{self, ManuallyDrop};
use core::ptr::NonNull;
use std::sync::Arc;

use machine::Model;
use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::wait::{Patient, WaitPolicy, retry_until};

use ending::News;
use fiber::Fiber;
use handle::{Body, Handle};
use home::Home;
use packet::Packet;
use shared::Shared;
use state::Pause;
use thread::{Inner, Manner, Thread};
use threads::{
    ending, handle, home, local, locals, packet, panics, priority, process, shares, stack, state,
    thread, timers,
};
use timers::Timers;

/// What a thread has of a stack here: a word that only who runs it touches.
mod fiber {
    use machine::cell::UnsafeCell;

    pub(crate) struct Fiber(pub(crate) UnsafeCell<u32>);
}

#[allow(unreachable_pub)]
mod join {
    pub struct JoinHandle<T>(core::marker::PhantomData<T>);

    impl<T> JoinHandle<T> {
        pub(crate) fn new() -> Self {
            Self(core::marker::PhantomData)
        }
    }
}

/// No thread of these models is spawned.
mod birth {
    use crate::join::JoinHandle;
    use crate::thread::Manner;

    pub(crate) fn spawn_here<F, T>(_: Manner, _: F) -> JoinHandle<T> {
        JoinHandle::new()
    }
}

/// No thread of these models is in a scope.
mod scope {
    pub(crate) struct Bounds;

    impl Bounds {
        pub(crate) fn panicked(&self) {}
        pub(crate) fn ended(&self) {}
    }
}

/// A runtime of one carrier and one thread: whether that is ready, and how often it has become so.
mod shared {
    use std::sync::Arc;

    use machine::atomic::{AtomicU32, Fresh, Ordering};
    use machine::wait::{Patient, WaitPolicy, retry_until};

    use crate::home::Home;
    use crate::process::Process;
    use crate::thread::Thread;

    pub(crate) struct Shared(AtomicU32);

    impl Shared {
        pub(crate) fn new() -> Arc<Self> {
            Arc::new(Self(AtomicU32::fresh(0)))
        }

        pub(crate) fn process(&self) -> Process {
            Process::here()
        }

        /// Whether it has become ready, as far as the caller has seen to that.
        pub(crate) fn is_ready(&self) -> bool {
            // Relaxed: a queue that orders nothing.
            self.0.load(Ordering::Relaxed) == 1
        }

        /// Waits until the thread is ready, and takes it.
        pub(crate) fn take(&self) {
            // Acquire: likewise.
            let taken = || (self.0.load(Ordering::Acquire) == 1).then_some(());
            retry_until(taken, &mut <Patient>::start());
            // Relaxed: nobody makes it ready before it runs.
            self.0.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn ready(thread: Thread) {
        let Home::Runtime(home) = thread.inner().home() else { unreachable!("of a runtime") };
        // SAFETY: it has not ended: it is not even ready yet.
        let shared = unsafe { home.share() };
        // Its own share waits with it.
        core::mem::forget(thread);
        // Release: what a queue's lock does.
        assert_eq!(shared.0.swap(1, Ordering::Release), 0, "made ready twice");
    }
}

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// A thread whose code is the model's.
#[repr(C)]
struct Stand(Inner);

// SAFETY: it is an `Inner` that is given its verbs.
unsafe impl Body for Stand {
    unsafe fn run(_this: NonNull<Self>) -> News {
        unreachable!("the model runs it")
    }

    unsafe fn refuse(_this: NonNull<Self>, _error: stack::StackError) -> News {
        unreachable!("it has a stack")
    }

    unsafe fn discard(_this: NonNull<Self>) {
        unreachable!("it has no claim")
    }
}

fn stand(home: Home) -> Thread {
    Thread::new(Handle::new(Box::new(Stand(Inner::new(Stand::VERBS, Manner::default(), home)))))
}

/// Parks the thread as its carrier does, and waits until it is ready again.
fn park(shared: &Shared, thread: &Thread) {
    if !thread.inner().state().take_token() {
        settle(shared, thread, Pause::Park);
    }
}

/// The second half of it.
fn settle(shared: &Shared, thread: &Thread, pause: Pause) {
    if lay_aside(thread, pause) {
        shared.take();
    }
    go_on(thread);
}

fn lay_aside(thread: &Thread, pause: Pause) -> bool {
    let fiber = Fiber(UnsafeCell::new(7));
    // SAFETY: this thread runs it.
    unsafe { thread.inner().lay_aside(fiber) };
    // SAFETY: likewise, so its own share is this one's.
    let own = unsafe { Thread::from_pointer(thread.pointer()) };
    own.settle(pause).map(mem::forget).is_none()
}

/// On its stack.
fn go_on(thread: &Thread) {
    // SAFETY: it is ready, and this is who runs it.
    let fiber = unsafe { thread.inner().take_up() }.expect("it was laid aside");
    // SAFETY: as above.
    fiber.0.with_mut(|word| unsafe { *word += 1 });
}

/// A thread, its runtime, and two things that it waits for.
struct Scene {
    shared: Arc<Shared>,
    thread: Thread,
    done: [AtomicU32; 2],
}

impl Scene {
    fn new() -> Arc<Self> {
        let shared = Shared::new();
        let thread = stand(Home::with(&shared));
        // Its own share, which goes around.
        mem::forget(thread.clone());
        Arc::new(Self { shared, thread, done: [AtomicU32::fresh(0), AtomicU32::fresh(0)] })
    }

    fn is_done(&self) -> bool {
        // Relaxed: parking orders it.
        self.done.iter().all(|done| done.load(Ordering::Relaxed) == 1)
    }

    fn make_done(&self, which: usize) {
        self.done[which].store(1, Ordering::Relaxed);
        self.thread.unpark();
    }
}

#[test]
fn parking_woken_again() {
    explore("parking_woken_again", Model::new(), || {
        let scene = Scene::new();
        // After it has looked for a token, and before it settles.
        scene.make_done(0);
        let other = {
            let scene = scene.clone();
            machine::thread::spawn(move || scene.make_done(1))
        };
        settle(&scene.shared, &scene.thread, Pause::Park);
        while !scene.is_done() {
            park(&scene.shared, &scene.thread);
        }
        other.join().expect("no panic");
    });
}

#[test]
fn parking_woken_by_two_bounded() {
    explore("parking_woken_by_two_bounded", Model::new().preemptions(2), || {
        let scene = Scene::new();
        let others = [0, 1].map(|which| {
            let scene = scene.clone();
            machine::thread::spawn(move || scene.make_done(which))
        });
        while !scene.is_done() {
            park(&scene.shared, &scene.thread);
        }
        others.into_iter().for_each(|other| other.join().expect("no panic"));
    });
}

#[test]
fn parking_a_stack_is_handed_on() {
    explore("parking_a_stack_is_handed_on", Model::new(), || {
        let scene = Scene::new();
        let other = {
            let scene = scene.clone();
            machine::thread::spawn(move || {
                while !scene.is_done() {
                    park(&scene.shared, &scene.thread);
                }
            })
        };
        scene.done[0].store(1, Ordering::Relaxed);
        scene.make_done(1);
        other.join().expect("no panic");
    });
}

/// Who unparks a thread that migrates runs it, from a queue that orders nothing.
#[test]
fn parking_a_stack_is_taken_by_who_wakes() {
    explore("parking_a_stack_is_taken_by_who_wakes", Model::new(), || {
        let scene = Scene::new();
        let other = {
            let scene = scene.clone();
            machine::thread::spawn(move || {
                scene.thread.unpark();
                if scene.shared.is_ready() {
                    go_on(&scene.thread);
                }
            })
        };
        if !lay_aside(&scene.thread, Pause::Park) {
            go_on(&scene.thread);
        }
        other.join().expect("no panic");
    });
}

/// A kernel thread parks until all are done.
fn sleep_until_done<const TIMES: usize>(
    done: &Arc<(Thread, [AtomicU32; TIMES])>,
    deadline: Deadline,
) {
    // Relaxed: parking orders it.
    while !done.1.iter().all(|done| done.load(Ordering::Relaxed) == 1) {
        done.0.inner().state().sleep(deadline);
        done.0.inner().state().take_token();
    }
}

fn in_the_kernel<const TIMES: usize>(name: &str, model: Model, deadline: fn() -> Deadline) {
    explore(name, model, move || {
        let each = [(); TIMES].map(|()| AtomicU32::fresh(0));
        let done = Arc::new((stand(Home::Kernel), each));
        let other = {
            let done = done.clone();
            machine::thread::spawn(move || {
                for which in &done.1 {
                    which.store(1, Ordering::Relaxed);
                    done.0.unpark();
                }
            })
        };
        sleep_until_done(&done, deadline());
        other.join().expect("no panic");
    });
}

#[test]
fn parking_in_the_kernel() {
    in_the_kernel::<1>("parking_in_the_kernel", Model::new().choices(0), || Deadline::NEVER);
}

#[test]
fn parking_in_the_kernel_bounded() {
    in_the_kernel::<2>(
        "parking_in_the_kernel_bounded",
        Model::new().preemptions(2).choices(0),
        || Deadline::NEVER,
    );
}

#[test]
fn parking_in_the_kernel_for_a_time_bounded() {
    let soon = || Deadline::after(core::time::Duration::from_secs(1));
    in_the_kernel::<2>(
        "parking_in_the_kernel_for_a_time_bounded",
        Model::new().preemptions(2).choices(1),
        soon,
    );
}

fn returns() -> UnsafeCell<u32> {
    UnsafeCell::new(7)
}

/// Makes a thread that returns what it did, and runs on one of loom's; calls `claims` with its claim, which is to wait for it, and has the result.
fn with_claim(claims: impl FnOnce(&Thread)) {
    let shared = Shared::new();
    let home = Home::with(&shared);
    let thread = Packet::thread(Manner::default(), home, None, returns as fn() -> _);
    let claim = alias(&thread);
    let other = machine::thread::spawn(move || run(thread));
    claims(&claim);
    // SAFETY: it is done, and `returns` is what it ran. By the one claim.
    let taken = unsafe { Packet::<fn() -> UnsafeCell<u32>, _>::take(claim.pointer()) };
    let Ok(result) = taken else { unreachable!("it does not panic") };
    // SAFETY: this thread's by now.
    result.with_mut(|result| assert_eq!(unsafe { *result }, 7));
    other.join().expect("no panic");
}

/// What lives by the share of another.
fn alias(thread: &Thread) -> ManuallyDrop<Thread> {
    // SAFETY: it is dropped when the share is its own.
    ManuallyDrop::new(unsafe { Thread::from_pointer(thread.pointer()) })
}

fn run(thread: Thread) {
    // SAFETY: once, and its own share is used up.
    unsafe { ManuallyDrop::new(thread).run() }.tell();
}

#[test]
fn parking_until_a_thread_ends() {
    explore("parking_until_a_thread_ends", Model::new().choices(0), || {
        with_claim(|claim| {
            let joiner = stand(Home::Kernel);
            until_told(claim, &joiner, || joiner.inner().state().sleep(Deadline::NEVER));
        });
    });
}

/// As `join` does: `joiner` waits until it is told of the claim's end.
fn until_told(claim: &Thread, joiner: &Thread, pause: impl Fn()) {
    let (state, ending) = (joiner.inner().state(), claim.inner().ending());
    let ends = state.ends();
    // SAFETY: it waits until it is told.
    if !ending.is_done() && unsafe { ending.await_by(joiner) } {
        loop {
            state.take_token();
            if state.ends() != ends {
                break;
            }
            pause();
        }
    }
}

#[test]
fn parking_until_told_bounded() {
    explore("parking_until_told_bounded", Model::new().preemptions(3), || {
        let shared = Shared::new();
        let joiner = stand(Home::with(&shared));
        // Something else that it has waited for.
        joiner.call();
        with_claim(|claim| {
            until_told(claim, &joiner, || {
                if lay_aside(&joiner, Pause::Wait) {
                    shared.take();
                }
                go_on(&joiner);
            });
            // It ends.
            drop(joiner);
        });
    });
}

#[test]
fn parking_until_the_end_is_seen() {
    explore("parking_until_the_end_is_seen", Model::new(), || {
        with_claim(|claim| {
            let done = || claim.inner().ending().is_done().then_some(());
            retry_until(done, &mut <Patient>::start());
        });
    });
}

/// Says when it is dropped.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        // Relaxed: only that there is one; the joins of the model order it.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn parking_for_nobody() {
    explore("parking_for_nobody", Model::new(), || {
        let drops = Arc::new(AtomicU32::fresh(0));
        let result = Counted(drops.clone());
        let shared = Shared::new();
        let home = Home::with(&shared);
        let thread = Packet::thread(Manner::default(), home, None, move || result);
        let claim = alias(&thread);
        let other = machine::thread::spawn(move || run(thread));
        if claim.inner().ending().detach() {
            // SAFETY: it has ended, and this is the one claim.
            unsafe { (claim.inner().verbs().discard)(claim.pointer()) };
            drop(ManuallyDrop::into_inner(claim));
        }
        other.join().expect("no panic");
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn parking_until_a_time_bounded() {
    explore("parking_until_a_time_bounded", Model::new().preemptions(2), || {
        let scene = Scene::new();
        let timers = Arc::new(Timers::new());
        scene.done[1].store(1, Ordering::Relaxed);
        let (key, late) = timers.add(Deadline::PAST, scene.thread.clone());
        assert!(late.watch, "nobody watches the clock");
        let other = {
            let (scene, timers) = (scene.clone(), timers.clone());
            machine::thread::spawn(move || {
                timers.run();
                scene.make_done(0);
            })
        };
        settle(&scene.shared, &scene.thread, Pause::Wait);
        timers.remove(key);
        let unparked = scene.thread.inner().state().take_token();
        assert!(!unparked || scene.is_done(), "neither the time nor the other");
        while !scene.is_done() {
            park(&scene.shared, &scene.thread);
        }
        other.join().expect("no panic");
        assert!(!timers.is_due());
    });
}
