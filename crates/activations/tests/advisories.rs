//! Errors of other runtimes and coroutines, each as a test named by its advisory
//! (<https://rustsec.org>).
//!
//! - 2026-0005. Crate: oneshot. Error: a receiver that is dropped in the midst of a poll reads what
//!   the sender has freed. Here: handles and receivers that are dropped beside the end; the model
//!   `parking_detached` decides.
//! - 2020-0151. Crate: generator. Error: a coroutine can be sent though its closure cannot. Here:
//!   what a thread runs and returns must be `Send` (`compile_fail` examples of `Scope` and
//!   `JoinHandle`); what it makes itself stays, as in 2021-0072; to make one that moves is
//!   `unsafe`.
//! - 2019-0020. Crate: generator. Error: a call outside of a coroutine reads memory that was never
//!   written. Here: every such call by a kernel thread.
//! - 2021-0072. Crate: tokio. Error: a value that cannot be sent is dropped by another thread.
//!   Here: on stacks and in locals, also in a panic: dropped by the kernel thread that made it.
//! - 2024-0005. Crate: threadalone. Error: the same, when the complaint about it cannot be written.
//!   Here: the same with a standard error that is not read.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::ThreadId;
use std::time::Duration;

use stanchion_activations::sync::{Mutex, Semaphore, channel};
use stanchion_activations::{
    Builder, Runtime, blocking, current, local, park, park_timeout, scope, sleep, spawn, yield_now,
};

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn rustsec_2026_0005_waiter_leaves_beside_the_end() {
    const EACH: usize = 5_000;
    let drops = Arc::new(AtomicUsize::new(0));
    let runtime = Runtime::new(2).unwrap();
    for round in 0..EACH {
        let result = Counted(drops.clone());
        let handle = runtime.spawn(move || result);
        (0..round % 50).for_each(|_| std::hint::spin_loop());
        // It asks, as a poll does, and goes whatever the answer is.
        let _ = handle.is_finished();
        drop(handle);
    }
    for round in 0..EACH {
        let (sender, receiver) = channel::bounded(round % 2);
        let message = Counted(drops.clone());
        let sends = runtime.spawn(move || drop(sender.send(message)));
        let got = receiver.recv_timeout(Duration::from_micros(round as u64 % 30));
        drop(receiver);
        drop(got);
        sends.join().unwrap();
    }
    drop(runtime);
    assert_eq!(drops.load(Relaxed), 2 * EACH);
}

/// Returns the message of a panic.
fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("nothing")
}

fn refused(call: impl FnOnce()) {
    let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
    assert!(said(&*payload).contains("runtime"), "{}", said(&*payload));
}

#[test]
fn rustsec_2019_0020_every_call_outside_of_a_runtime() {
    local! {
        static OWN: RefCell<u32> = RefCell::new(7);
    }
    std::thread::spawn(|| {
        current().unpark();
        park();
        assert!(!park_timeout(Duration::ZERO), "the token is used up");
        sleep(Duration::from_micros(1));
        yield_now();
        assert_eq!(blocking(|| 7), 7);
        assert_eq!(OWN.with(|own| *own.borrow()), 7);
        let lock = Mutex::new(());
        let guard = lock.lock();
        assert!(lock.try_lock_for(Duration::from_micros(1)).is_none());
        drop(guard);
        assert!(Semaphore::new(0).try_acquire_for(Duration::from_micros(1)).is_none());
        refused(|| drop(spawn(|| ())));
        refused(|| drop(Builder::new().spawn(|| ())));
        refused(|| scope(|_| ()));
    })
    .join()
    .unwrap();
}

/// Not inlined: it must not be asked before a pause on behalf of what comes after.
#[inline(never)]
fn kernel_thread() -> ThreadId {
    std::thread::current().id()
}

/// Says where it is dropped.
struct Stays {
    made: ThreadId,
    here: Rc<()>,
    astray: Arc<AtomicUsize>,
    _drops: Counted,
}

impl Stays {
    fn new(astray: &Arc<AtomicUsize>, drops: &Arc<AtomicUsize>) -> Self {
        let (astray, drops) = (astray.clone(), Counted(drops.clone()));
        Self { made: kernel_thread(), here: Rc::new(()), astray, _drops: drops }
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        self.astray.fetch_add(usize::from(self.made != kernel_thread()), Relaxed);
    }
}

local! {
    static STAYS: RefCell<Option<Stays>> = RefCell::new(None);
}

/// As its own value says, without a message for a report.
struct Quiet;

#[test]
fn rustsec_2021_0072_what_cannot_be_sent_is_dropped_where_it_was_made() {
    const THREADS: usize = 400;
    let [astray, drops] = [0, 0].map(|none| Arc::new(AtomicUsize::new(none)));
    let runtime = Runtime::new(4).unwrap();
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (astray, drops) = (astray.clone(), drops.clone());
            runtime.spawn(move || {
                let on_the_stack = Stays::new(&astray, &drops);
                STAYS.with(|place| place.replace(Some(Stays::new(&astray, &drops))));
                for round in 0..5 {
                    let shared = on_the_stack.here.clone();
                    match (number + round) % 3 {
                        0 => yield_now(),
                        1 => sleep(Duration::from_micros(50)),
                        _ => blocking(|| std::thread::sleep(Duration::from_micros(50))),
                    }
                    assert_eq!(Rc::strong_count(&shared), 2);
                }
                if number % 4 == 0 {
                    std::panic::resume_unwind(Box::new(Quiet));
                }
                if number % 4 == 1 {
                    panic!("as it is meant to");
                }
                drop(on_the_stack);
            })
        })
        .collect();
    for (number, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().is_err(), number % 4 < 2, "thread {number}");
    }
    drop(runtime);
    assert_eq!(drops.load(Relaxed), 2 * THREADS);
    assert_eq!(astray.load(Relaxed), 0, "dropped by another kernel thread");
}

#[test]
fn rustsec_2024_0005_the_same_where_no_complaint_can_be_written() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut same = std::process::Command::new(std::env::current_exe().unwrap());
    same.args(["--exact", "rustsec_2021_0072_what_cannot_be_sent_is_dropped_where_it_was_made"]);
    // Or the test's panics would be written to memory.
    same.arg("--nocapture").stderr(writer);
    let output = same.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{}: {told}", output.status);
}
