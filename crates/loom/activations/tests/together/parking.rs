//! Models of parking: a wake-up is not lost, and a thread that continues sees what was done before,
//! and has its stack.
//!
//! - `parking_woken_again`. Threads: a worker with a thread that parks and has a token, one that
//!   unparks it for another reason. Failure it looks for: the thread continues for the first, and
//!   sleeps beside the second.
//! - `parking_woken_by_two_bounded`. Threads: the same, by two. Failure it looks for: the same; it
//!   is made ready twice.
//! - `parking_a_stack_is_handed_on`. Threads: the same, once, and the thread continues where it
//!   was woken. Failure it looks for: the stack is not the one that was laid aside.
//! - `parking_a_stack_is_taken_by_the_waker`. Threads: the same, and the waker runs the thread.
//!   Failure it looks for: the same, in a queue that orders nothing.
//! - `parking_in_the_kernel`. Threads: a kernel thread that parks, one that unparks it. Failure it
//!   looks for: it sleeps on, or does not see what was done.
//! - `parking_in_the_kernel_bounded`. Threads: the same, where it is unparked twice. Failure it
//!   looks for: the same; the second is lost.
//! - `parking_in_the_kernel_for_a_time_bounded`. Threads: the same, with a time that may pass.
//!   Failure it looks for: a token is lost when both happen.
//! - `parking_until_a_thread_ends`. Threads: a thread that ends, its joiner. Failure it looks for:
//!   the joiner is not woken, or does not see the result.
//! - `parking_until_notified_bounded`. Threads: the same, where the joiner is a user-level thread
//!   that may continue for another reason, and ends. Failure it looks for: it is notified when it
//!   is gone.
//! - `parking_until_the_end_is_seen`. Threads: the same, where the joiner only asks. Failure it
//!   looks for: the result is not seen.
//! - `parking_detached`. Threads: a thread that ends, one that drops its join handle. Failure it
//!   looks for: both drop the result, or neither.
//! - `parking_until_a_time_bounded`. Threads: a worker that looks at the times, one that unparks
//!   the thread itself. Failure it looks for: it is woken twice or not at all.
//!
//! Two threads are explored without bound where each does one thing. Two cases did not end after
//! 100,000 executions, and have a bound in their names: a thread that is unparked twice, and two
//! threads with the lock of times between them, which is a mutex with a policy. Every model prints
//! `model NAME: N executions`.

use core::mem::{self, ManuallyDrop};
use core::ptr::NonNull;
use std::sync::{Arc, Mutex};

use stanchion_activations_loom::__internal::{
    Attributes, CompletionNotice, Header, Pause, Process, Scheduler, TaskCell, Thread, ThreadCell,
    ThreadFiber, ThreadHome, Timers, unused_fiber,
};
use stanchion_activations_loom::StackError;
use stanchion_machine::Model;
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::{Patient, WaitPolicy, retry_until};
use stanchion_models::explore;

/// A runtime of one worker and one thread: 1 while that is ready.
struct Runtime(AtomicU32);

impl Runtime {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU32::fresh(0)))
    }

    /// Returns whether the thread is ready, as far as the caller has seen to that.
    fn is_ready(&self) -> bool {
        // Relaxed: a queue that orders nothing.
        self.0.load(Ordering::Relaxed) == 1
    }

    /// Waits until the thread is ready, and takes it.
    fn take(&self) {
        // Acquire: as the lock of a queue.
        let taken = || (self.0.load(Ordering::Acquire) == 1).then_some(());
        retry_until(taken, &mut <Patient>::start());
        // Relaxed: no thread makes it ready before it runs.
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Scheduler for Runtime {
    fn process(&self) -> Process {
        Process::current()
    }

    unsafe fn make_ready(runtime: NonNull<Self>, thread: Thread) {
        // SAFETY: the caller's promise.
        let runtime = unsafe { runtime.as_ref() };
        // The own reference waits with the thread.
        mem::forget(thread);
        // Release: as the lock of a queue.
        assert_eq!(runtime.0.swap(1, Ordering::Release), 0, "made ready twice");
    }
}

/// The cell of a thread that the model runs.
#[repr(C)]
struct ModelThread(Header);

// SAFETY: it is a `Header` that is given this vtable.
unsafe impl ThreadCell for ModelThread {
    unsafe fn run(_this: NonNull<Self>) -> CompletionNotice {
        unreachable!("the model runs it")
    }

    unsafe fn refuse(_this: NonNull<Self>, _error: StackError) -> CompletionNotice {
        unreachable!("it has a stack")
    }

    unsafe fn discard(_this: NonNull<Self>) {
        unreachable!("it has no join handle")
    }

    unsafe fn make_ready(thread: Thread) {
        let address = thread.header().runtime::<Runtime>().expect("a kernel thread is woken");
        // SAFETY: the model keeps the runtime, and made the thread for it.
        unsafe { Runtime::make_ready(address, thread) };
    }
}

fn thread_of(home: ThreadHome) -> Thread {
    let header = Header::new(ModelThread::VTABLE, Attributes::default(), home);
    Thread::new(Box::new(ModelThread(header)))
}

/// A thread of a runtime, its fiber while it runs, and two things that it waits for.
struct Scene {
    /// The runtime of the thread. No thread replaces it.
    runtime: Arc<Runtime>,
    /// The thread that parks. No thread replaces it.
    thread: Thread,
    /// Loom does not see this lock. The header's cell reports races.
    fiber: Mutex<Option<ThreadFiber>>,
    /// The two events that the thread waits for: 1 if the event has happened. The thread that
    /// unparks writes it.
    done: [AtomicU32; 2],
}

impl Scene {
    fn new() -> Arc<Self> {
        let runtime = Runtime::new();
        let thread = thread_of(ThreadHome::of(&runtime, Process::current()));
        // Its own reference, which travels with it.
        mem::forget(thread.clone());
        Arc::new(Self {
            runtime,
            thread,
            fiber: Mutex::new(Some(unused_fiber())),
            done: [AtomicU32::fresh(0), AtomicU32::fresh(0)],
        })
    }

    fn is_done(&self) -> bool {
        // Relaxed: parking orders it.
        self.done.iter().all(|done| done.load(Ordering::Relaxed) == 1)
    }

    fn make_done(&self, which: usize) {
        self.done[which].store(1, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// Parks the thread as its worker does, and waits until it is ready again.
    fn park(&self) {
        if !self.thread.header().park_state().take_token() {
            self.settle(Pause::Park);
        }
    }

    /// Does the second half of it.
    fn settle(&self, pause: Pause) {
        settle(&self.runtime, &self.thread, &self.fiber, pause);
    }
}

fn settle(runtime: &Runtime, thread: &Thread, fiber: &Mutex<Option<ThreadFiber>>, pause: Pause) {
    if lay_aside(thread, fiber, pause) {
        runtime.take();
    }
    continue_thread(thread, fiber);
}

/// Returns whether the thread is parked.
fn lay_aside(thread: &Thread, fiber: &Mutex<Option<ThreadFiber>>, pause: Pause) -> bool {
    let fiber = fiber.lock().unwrap().take().expect("it runs");
    // SAFETY: this thread runs it.
    unsafe { thread.header().lay_aside(fiber) };
    // SAFETY: as above, so its own reference is this thread's.
    let own = unsafe { Thread::from_pointer(thread.pointer()) };
    own.settle(pause).map(mem::forget).is_none()
}

/// Continues the thread on its stack.
fn continue_thread(thread: &Thread, fiber: &Mutex<Option<ThreadFiber>>) {
    // SAFETY: it is ready, and this is the thread that runs it.
    let taken = unsafe { thread.header().take_up() }.expect("it was laid aside");
    *fiber.lock().unwrap() = Some(taken);
}

#[test]
fn parking_woken_again() {
    explore("parking_woken_again", Model::new(), || {
        let scene = Scene::new();
        // After it has looked for a token, and before it settles.
        scene.make_done(0);
        let other = {
            let scene = scene.clone();
            stanchion_machine::thread::spawn(move || scene.make_done(1))
        };
        scene.settle(Pause::Park);
        while !scene.is_done() {
            scene.park();
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
            stanchion_machine::thread::spawn(move || scene.make_done(which))
        });
        while !scene.is_done() {
            scene.park();
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
            stanchion_machine::thread::spawn(move || {
                while !scene.is_done() {
                    scene.park();
                }
            })
        };
        scene.done[0].store(1, Ordering::Relaxed);
        scene.make_done(1);
        other.join().expect("no panic");
    });
}

/// The thread that unparks a thread that migrates runs it, from a queue that orders nothing.
#[test]
fn parking_a_stack_is_taken_by_the_waker() {
    explore("parking_a_stack_is_taken_by_the_waker", Model::new(), || {
        let scene = Scene::new();
        let other = {
            let scene = scene.clone();
            stanchion_machine::thread::spawn(move || {
                scene.thread.unpark();
                if scene.runtime.is_ready() {
                    continue_thread(&scene.thread, &scene.fiber);
                }
            })
        };
        if !lay_aside(&scene.thread, &scene.fiber, Pause::Park) {
            continue_thread(&scene.thread, &scene.fiber);
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
        done.0.header().park_state().sleep(deadline);
        done.0.header().park_state().take_token();
    }
}

fn in_the_kernel<const TIMES: usize>(name: &str, model: Model, deadline: fn() -> Deadline) {
    explore(name, model, move || {
        let each = [(); TIMES].map(|()| AtomicU32::fresh(0));
        let done = Arc::new((thread_of(ThreadHome::Kernel), each));
        let other = {
            let done = done.clone();
            stanchion_machine::thread::spawn(move || {
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

fn payload() -> UnsafeCell<u32> {
    UnsafeCell::new(7)
}

/// Makes a thread that returns a payload, and runs on one of loom's. Calls `join` with its join
/// handle, which is to wait for it, and takes the result.
fn with_join_handle(join: impl FnOnce(&Thread)) {
    let runtime = Runtime::new();
    let body = payload as fn() -> _;
    let thread = TaskCell::thread(Attributes::default(), &runtime, None, body);
    let handle = alias(&thread);
    let other = stanchion_machine::thread::spawn(move || run(thread));
    join(&handle);
    // SAFETY: it has ended, and this is the type of its cell. By its join handle.
    let taken = unsafe { TaskCell::<fn() -> UnsafeCell<u32>, _, Runtime>::take(handle.pointer()) };
    let Ok(result) = taken else { unreachable!("it does not panic") };
    // SAFETY: this thread owns it by now.
    result.with_mut(|result| assert_eq!(unsafe { *result }, 7));
    other.join().expect("no panic");
}

/// Returns a handle that lives by the reference of another.
fn alias(thread: &Thread) -> ManuallyDrop<Thread> {
    // SAFETY: it is dropped when the reference is its own.
    ManuallyDrop::new(unsafe { Thread::from_pointer(thread.pointer()) })
}

fn run(thread: Thread) {
    // SAFETY: once, and its own reference is used up.
    unsafe { ManuallyDrop::new(thread).run() }.send();
}

#[test]
fn parking_until_a_thread_ends() {
    explore("parking_until_a_thread_ends", Model::new().choices(0), || {
        with_join_handle(|handle| {
            let joiner = thread_of(ThreadHome::Kernel);
            until_notified(handle, &joiner, || {
                joiner.header().park_state().sleep(Deadline::NEVER);
            });
        });
    });
}

/// Waits as `join` does: `joiner` waits until it is notified of the thread's end.
fn until_notified(handle: &Thread, joiner: &Thread, pause: impl Fn()) {
    let state = joiner.header().park_state();
    let ends = state.ends();
    let is_done = handle.header().completion().is_done();
    // SAFETY: it waits until it is notified.
    if !is_done && unsafe { handle.await_by(joiner) } {
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
fn parking_until_notified_bounded() {
    explore("parking_until_notified_bounded", Model::new().preemptions(3), || {
        let (runtime, fiber) = (Runtime::new(), Mutex::new(Some(unused_fiber())));
        let joiner = thread_of(ThreadHome::of(&runtime, Process::current()));
        // Something else that it has waited for.
        joiner.notify();
        with_join_handle(|handle| {
            until_notified(handle, &joiner, || settle(&runtime, &joiner, &fiber, Pause::Wait));
            // It ends.
            drop(joiner);
        });
    });
}

#[test]
fn parking_until_the_end_is_seen() {
    explore("parking_until_the_end_is_seen", Model::new(), || {
        with_join_handle(|handle| {
            let done = || handle.header().completion().is_done().then_some(());
            retry_until(done, &mut <Patient>::start());
        });
    });
}

/// Counts its drop.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        // Relaxed: all that matters is that there is one; the joins of the model order it.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn parking_detached() {
    explore("parking_detached", Model::new(), || {
        let drops = Arc::new(AtomicU32::fresh(0));
        let result = Counted(drops.clone());
        let runtime = Runtime::new();
        let thread = TaskCell::thread(Attributes::default(), &runtime, None, move || result);
        let handle = alias(&thread);
        let other = stanchion_machine::thread::spawn(move || run(thread));
        if handle.header().completion().detach() {
            // SAFETY: it has ended, and this is its join handle.
            unsafe { (handle.header().vtable().discard)(handle.pointer()) };
            drop(ManuallyDrop::into_inner(handle));
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
        assert!(late.timekeeper, "there is no timekeeper");
        let other = {
            let (scene, timers) = (scene.clone(), timers.clone());
            stanchion_machine::thread::spawn(move || {
                timers.run();
                scene.make_done(0);
            })
        };
        scene.settle(Pause::Wait);
        timers.remove(key);
        let unparked = scene.thread.header().park_state().take_token();
        assert!(!unparked || scene.is_done(), "neither the time nor the other");
        while !scene.is_done() {
            scene.park();
        }
        other.join().expect("no panic");
        assert!(!timers.is_due());
    });
}
