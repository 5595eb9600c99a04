//! Tests of the event count with real threads. A watch reports a thread that sleeps for ever.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use stanchion_alone::Sleepers;
use stanchion_competitive::{EventCount, Key};
use stanchion_machine::clock::Deadline;
use static_assertions::{assert_impl_all, const_assert};

use crate::common::within;

/// Only a lost wake-up takes so long, even on a busy machine.
const LONG: Duration = Duration::from_secs(600);

assert_impl_all!(EventCount: Send, Sync, Default);
assert_impl_all!(Key<'static>: Send, Sync);
const_assert!(cfg!(not(target_pointer_width = "64")) || size_of::<EventCount>() == 48);

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(2))
}

/// Items to be taken, and the threads that wait for them.
#[derive(Default)]
struct Shelf {
    /// The number of items. Written by every thread.
    items: AtomicUsize,
    /// The event count of the threads that find none.
    events: EventCount,
}

impl Shelf {
    fn take(&self) -> bool {
        self.items.fetch_update(Relaxed, Relaxed, |items| items.checked_sub(1)).is_ok()
    }

    fn wait(&self, deadline: impl Fn() -> Deadline) {
        loop {
            let key = self.events.prepare();
            if self.take() {
                return self.events.cancel(key);
            }
            if self.events.wait_until(key, deadline()) && self.take() {
                return;
            }
        }
    }
}

/// As many items as there are takers; the last sleeper can only come by the last notification.
fn everything_is_taken(producers: usize, consumers: usize, each: usize, patient: bool) {
    within(LONG, move || {
        let shelf = Shelf::default();
        std::thread::scope(|scope| {
            for _ in 0..consumers {
                scope.spawn(|| {
                    for round in 0..each * producers {
                        if patient || round % 2 == 0 {
                            shelf.wait(|| Deadline::NEVER);
                        } else {
                            shelf.wait(|| Deadline::after(Duration::from_micros(20)));
                        }
                    }
                });
            }
            for _ in 0..producers {
                scope.spawn(|| {
                    for item in 0..each * consumers {
                        shelf.items.fetch_add(1, Relaxed);
                        match item % 3 {
                            0 => shelf.events.notify_one(),
                            1 => shelf.events.notify_many(1),
                            _ => shelf.events.notify_all(),
                        };
                    }
                });
            }
        });
        assert_eq!(shelf.items.load(Relaxed), 0);
        assert_eq!(shelf.events.registered(), 0);
    });
}

#[test]
fn one_to_one() {
    everything_is_taken(1, 1, 20_000, true);
}

#[test]
fn many_to_many() {
    everything_is_taken(3, 4, 1_000, true);
}

#[test]
fn many_of_whom_some_give_up() {
    everything_is_taken(2, 3, 300, false);
}

#[test]
fn more_sleepers_than_a_batch_are_woken_exactly() {
    within(LONG, || {
        const SLEEPERS: usize = 40;
        let events = EventCount::new();
        let sleepers = Sleepers::new();
        let (mut registered, mut woken) = (0, [0; 5]);
        let done = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..SLEEPERS {
                scope.spawn(|| {
                    let key = events.prepare();
                    sleepers.arrive();
                    events.wait(key);
                    done.fetch_add(1, Relaxed);
                });
            }
            // A thread that is registered may not be asleep yet.
            sleepers.until_asleep(SLEEPERS);
            registered = events.registered();
            woken[0] = events.notify_one();
            woken[1] = events.notify_many(3);
            woken[2] = events.notify_many(20);
            woken[3] = events.notify_all();
            woken[4] = events.notify_all();
        });
        // Not before all are awake, for which the scope waits.
        assert_eq!((registered, woken), (SLEEPERS, [1, 3, 20, 16, 0]));
        assert_eq!(done.load(Relaxed), SLEEPERS as u32);
        assert_eq!(events.registered(), 0);
    });
}

#[test]
fn a_deadline_passes_and_not_early() {
    let events = EventCount::new();
    for wait in [Duration::ZERO, Duration::from_millis(5)] {
        let key = events.prepare();
        let start = Instant::now();
        assert!(!events.wait_until(key, Deadline::after(wait)));
        assert!(start.elapsed() >= wait);
        assert_eq!(events.registered(), 0);
    }
}

#[test]
fn nobody_is_told_nothing() {
    let events = EventCount::new();
    assert_eq!(events.notify_all(), 0);
    let key = events.prepare();
    // A notification before it was prepared is not for it.
    assert!(!events.wait_until(key, soon()));
    let key = events.prepare();
    assert_eq!(events.notify_many(0), 0);
    assert!(!events.wait_until(key, soon()), "none is none");
}

#[test]
fn a_panic_between_takes_the_registration_back() {
    let events = EventCount::new();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _key = events.prepare();
        panic!("while it looked into its sources");
    }));
    assert!(unwound.is_err());
    assert_eq!(events.registered(), 0);
}

#[test]
fn a_key_of_another_is_refused() {
    let (one, other) = (EventCount::new(), EventCount::new());
    let key = one.prepare();
    let refused = catch_unwind(AssertUnwindSafe(|| other.wait(key))).unwrap_err();
    let message = refused.downcast_ref::<String>().unwrap();
    assert!(message.contains("wait where it was prepared"), "{message}");
    assert_eq!((one.registered(), other.registered()), (0, 0));
}

#[test]
fn a_forgotten_key_does_no_harm() {
    let events = EventCount::new();
    std::mem::forget(events.prepare());
    assert_eq!(events.notify_all(), 0);
    let key = events.prepare();
    assert!(!events.wait_until(key, soon()));
    assert_eq!(events.registered(), 1);
}
