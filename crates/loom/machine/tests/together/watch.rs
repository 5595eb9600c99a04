//! Models of the watch: no call is lost, and each call ends one wait. The waiter then sees what the
//! caller wrote before the call.

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::presence::watch::{Watch, Woken};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_machine_loom as stanchion_machine;

/// A watch, and a message that is written before a call.
struct Shared {
    /// The caller wakes it, and the listener waits on it.
    watch: Watch,
    /// The caller writes 7 before it wakes the watch. The listener reads it after its wait.
    message: UnsafeCell<u32>,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { watch: Watch::new(), message: UnsafeCell::new(0) })
    }

    /// Writes the message, and wakes the watch.
    fn call(&self) {
        // SAFETY: the listener reads only after the call has ended its wait.
        self.message.with_mut(|message| unsafe { *message = 7 });
        self.watch.wake();
    }

    fn read(&self) -> u32 {
        // SAFETY: the call has ended the wait, and the caller writes nothing after the call.
        self.message.with(|message| unsafe { *message })
    }

    /// Waits until a call ends a wait.
    fn listen(&self, deadline: fn() -> Deadline) {
        while self.watch.wait(deadline()) != Woken::Woken {}
    }
}

fn soon() -> Deadline {
    Deadline::after(core::time::Duration::from_millis(1))
}

#[test]
fn watch_loses_no_call() {
    let explored = Model::new().check(|| {
        let shared = Shared::new();
        let caller = {
            let shared = shared.clone();
            thread::spawn(move || shared.call())
        };
        shared.listen(|| Deadline::NEVER);
        assert_eq!(shared.read(), 7);
        caller.join().unwrap();
    });
    println!("model watch_loses_no_call: {explored}");
}

#[test]
fn watch_with_a_deadline_loses_no_call() {
    let explored = Model::new().check(|| {
        let shared = Shared::new();
        let caller = {
            let shared = shared.clone();
            thread::spawn(move || shared.call())
        };
        shared.listen(soon);
        assert_eq!(shared.read(), 7);
        caller.join().unwrap();
    });
    println!("model watch_with_a_deadline_loses_no_call: {explored}");
}

#[test]
fn watch_answers_a_call_once() {
    let explored = Model::new().check(|| {
        let shared = Shared::new();
        let caller = {
            let shared = shared.clone();
            thread::spawn(move || shared.watch.wake())
        };
        let mut answered = u32::from(shared.watch.wait(soon()) == Woken::Woken);
        caller.join().unwrap();
        let last = loop {
            let woken = shared.watch.wait(Deadline::PAST);
            answered += u32::from(woken == Woken::Woken);
            if woken == Woken::TimedOut {
                break answered;
            }
        };
        assert_eq!(last, 1, "answers to one call");
    });
    println!("model watch_answers_a_call_once: {explored}");
}

/// If two calls end one wait, the waiter sees what both callers wrote.
#[test]
fn watch_sees_both_of_two_callers_bounded() {
    struct Two {
        /// Both callers wake it, and the body waits on it.
        watch: Watch,
        /// One message for each caller, which writes it before it wakes the watch.
        messages: [UnsafeCell<u32>; 2],
        /// The number of callers that have woken the watch. Each caller adds one.
        called: AtomicU32,
    }

    let explored = Model::new().preemptions(3).check(|| {
        let two = Arc::new(Two {
            watch: Watch::new(),
            messages: [UnsafeCell::new(0), UnsafeCell::new(0)],
            called: AtomicU32::new(0),
        });
        let callers = [0, 1].map(|number: usize| {
            let two = two.clone();
            thread::spawn(move || {
                // SAFETY: the body reads only after a wait that both calls have ended.
                two.messages[number].with_mut(|message| unsafe { *message = 1 });
                two.watch.wake();
                // Relaxed: the count says that both have called, and publishes nothing else.
                two.called.fetch_add(1, Ordering::Relaxed);
            })
        });
        if two.called.load(Ordering::Relaxed) == 2 {
            assert_eq!(two.watch.wait(Deadline::PAST), Woken::Woken);
            for message in &two.messages {
                // SAFETY: both calls have ended the wait, and no caller writes after its call.
                assert_eq!(message.with(|message| unsafe { *message }), 1);
            }
            assert_ne!(two.watch.wait(Deadline::PAST), Woken::Woken);
        }
        for caller in callers {
            caller.join().unwrap();
        }
    });
    println!("model watch_sees_both_of_two_callers_bounded: {explored}");
}
