//! A thread that waits in `sync` keeps the unparks that come meanwhile for its next park.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::yield_now as let_run;
use std::time::Duration;

use stanchion_activations::sync::{Barrier, Condvar, Mutex, Semaphore, channel};
use stanchion_activations::{Runtime, Thread, current, park_timeout, yield_now};

/// No park of these tests lasts so long, unless its token is lost.
const LONG: Duration = Duration::from_secs(20);

/// The rounds of unparks while a thread waits.
const ROUNDS: usize = 40;

/// Something to wait for, and what ends the wait.
trait Thing: Default + Send + Sync + 'static {
    fn wait(&self);
    /// Called when the thread is about to wait, or does.
    fn end(&self);
}

/// A meeting of a waiter and a waker. The waiter leaves its handle first.
struct Meeting<T> {
    thing: T,
    waits: std::sync::Mutex<Option<Thread>>,
    has_begun: AtomicBool,
}

/// Waits; says whether the unparks that came before and meanwhile make one park return.
fn waiter<T: Thing>(meeting: &Meeting<T>) -> bool {
    *meeting.waits.lock().unwrap() = Some(current());
    meeting.has_begun.store(true, Ordering::Release);
    meeting.thing.wait();
    park_timeout(LONG)
}

/// Unparks the waiter a few times while it waits, and then ends the wait.
fn unparks<T: Thing>(meeting: &Meeting<T>, round: usize, let_others: fn()) {
    while !meeting.has_begun.load(Ordering::Acquire) {
        let_others();
    }
    let waits = meeting.waits.lock().unwrap().clone().unwrap();
    for _ in 0..=round % 4 {
        (0..round).for_each(|_| let_others());
        waits.unpark();
        let_others();
    }
    meeting.thing.end();
}

fn keeps_what_is_meant_for_its_parks<T: Thing>() {
    let meeting = || {
        let waits = std::sync::Mutex::new(None);
        Arc::new(Meeting { thing: T::default(), waits, has_begun: AtomicBool::new(false) })
    };
    for processors in 1..=2 {
        let runtime = Runtime::new(processors).unwrap();
        for round in 0..ROUNDS {
            let here = meeting();
            let there = here.clone();
            let waits = runtime.spawn(move || waiter(&there));
            runtime.spawn(move || unparks(&here, round, yield_now)).join().unwrap();
            assert!(waits.join().unwrap(), "a user-level thread has lost its token");
        }
    }
    for round in 0..ROUNDS {
        let here = meeting();
        let there = here.clone();
        let waits = std::thread::spawn(move || waiter(&there));
        unparks(&here, round, let_run);
        assert!(waits.join().unwrap(), "a kernel thread has lost its token");
    }
}

/// A mutex that is held from the beginning.
struct Held(Mutex<()>);

impl Default for Held {
    fn default() -> Self {
        let held = Self(Mutex::new(()));
        std::mem::forget(held.0.lock());
        held
    }
}

impl Thing for Held {
    fn wait(&self) {
        drop(self.0.lock());
    }

    fn end(&self) {
        // SAFETY: it is held from the beginning on, and released here only.
        unsafe { self.0.force_unlock(lock_api::GuardNoSend::new()) };
    }
}

#[test]
fn mutex_waiter_keeps_its_token() {
    keeps_what_is_meant_for_its_parks::<Held>();
}

/// The same with a time that does not pass.
#[derive(Default)]
struct HeldForATime(Held);

impl Thing for HeldForATime {
    fn wait(&self) {
        drop(self.0.0.try_lock_for(LONG).expect("it is released"));
    }

    fn end(&self) {
        self.0.end();
    }
}

#[test]
fn timed_mutex_waiter_keeps_its_token() {
    keeps_what_is_meant_for_its_parks::<HeldForATime>();
}

#[derive(Default)]
struct Condition(Mutex<bool>, Condvar);

impl Thing for Condition {
    fn wait(&self) {
        self.1.wait_while(&mut self.0.lock(), |holds| !*holds);
    }

    fn end(&self) {
        *self.0.lock() = true;
        self.1.notify_all();
    }
}

#[test]
fn condition_waiter_keeps_its_token() {
    keeps_what_is_meant_for_its_parks::<Condition>();
}

struct NoPermits(Semaphore);

impl Default for NoPermits {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Thing for NoPermits {
    fn wait(&self) {
        self.0.acquire().forget();
    }

    fn end(&self) {
        self.0.add_permits(1);
    }
}

#[test]
fn permit_waiter_keeps_its_token() {
    keeps_what_is_meant_for_its_parks::<NoPermits>();
}

struct OfTwo(Barrier);

impl Default for OfTwo {
    fn default() -> Self {
        Self(Barrier::new(2))
    }
}

impl Thing for OfTwo {
    fn wait(&self) {
        self.0.wait();
    }

    fn end(&self) {
        self.0.wait();
    }
}

#[test]
fn barrier_waiter_keeps_its_token() {
    keeps_what_is_meant_for_its_parks::<OfTwo>();
}

struct Messages(channel::Sender<()>, channel::Receiver<()>);

impl Default for Messages {
    fn default() -> Self {
        let (sender, receiver) = channel::bounded(1);
        Self(sender, receiver)
    }
}

impl Thing for Messages {
    fn wait(&self) {
        self.1.recv().expect("there is a sender");
    }

    fn end(&self) {
        self.0.send(()).expect("there is a receiver");
    }
}

#[test]
fn channel_waiter_keeps_its_token() {
    keeps_what_is_meant_for_its_parks::<Messages>();
}
