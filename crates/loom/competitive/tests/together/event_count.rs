//! Models of the event count. A thread that would sleep for ever is reported as a deadlock.
//!
//! Sources of work are Relaxed on purpose: the event count must make up for it.

use std::time::Duration;

use stanchion_competitive_loom::EventCount;
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

use Ordering::Relaxed;

fn some_time() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

/// Items to be taken, and the event count on which threads wait for them.
struct Shelf {
    /// The number of items. Written by every thread.
    items: AtomicU32,
    /// The event count.
    events: EventCount,
}

impl Shelf {
    fn new() -> Arc<Self> {
        Arc::new(Self { items: AtomicU32::new(0), events: EventCount::new() })
    }

    fn take(&self) -> bool {
        self.items.fetch_update(Relaxed, Relaxed, |items| items.checked_sub(1)).is_ok()
    }

    /// Takes an item, however long it takes.
    fn wait(&self) {
        while !self.wait_until(Deadline::NEVER) {}
    }

    /// One round: takes an item, or waits until there may be one; whether it took one.
    fn wait_until(&self, deadline: Deadline) -> bool {
        self.wait_as(usize::MAX, deadline)
    }

    /// The same under a name.
    fn wait_as(&self, name: usize, deadline: Deadline) -> bool {
        let key = self.events.prepare();
        if self.take() {
            self.events.cancel(key);
            return true;
        }
        self.events.wait_as(key, name, deadline) && self.take()
    }

    fn put(&self) {
        self.items.fetch_add(1, Relaxed);
        self.events.notify_one();
    }

    /// Returns whether no thread is registered any more.
    fn is_quiet(&self) -> bool {
        self.events.registered() == 0
    }
}

fn spawn(shelf: &Arc<Shelf>, body: fn(&Shelf)) -> thread::JoinHandle<()> {
    let shelf = shelf.clone();
    thread::spawn(move || body(&shelf))
}

#[test]
fn event_count_two_threads() {
    explore("event_count_two_threads", Model::new(), || {
        let shelf = Shelf::new();
        let producer = spawn(&shelf, Shelf::put);
        shelf.wait();
        producer.join().unwrap();
        assert!(shelf.is_quiet());
    });
}

/// The notification is for one name, under which the thread sleeps.
#[test]
fn event_count_a_name_is_notified() {
    explore("event_count_a_name_is_notified", Model::new(), || {
        let shelf = Shelf::new();
        let producer = spawn(&shelf, |shelf| {
            shelf.items.fetch_add(1, Relaxed);
            shelf.events.notify_only(7);
        });
        while !shelf.wait_as(7, Deadline::NEVER) {}
        producer.join().unwrap();
        assert!(shelf.is_quiet());
    });
}

#[test]
fn event_count_two_items_bounded() {
    explore("event_count_two_items_bounded", Model::new().preemptions(3), || {
        let shelf = Shelf::new();
        let producer = spawn(&shelf, |shelf| (0..2).for_each(|_| shelf.put()));
        (0..2).for_each(|_| shelf.wait());
        producer.join().unwrap();
        assert!(shelf.is_quiet());
    });
}

#[test]
fn event_count_two_producers_bounded() {
    explore("event_count_two_producers_bounded", Model::new().preemptions(2), || {
        let shelf = Shelf::new();
        let producers = [spawn(&shelf, Shelf::put), spawn(&shelf, Shelf::put)];
        (0..2).for_each(|_| shelf.wait());
        producers.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(shelf.is_quiet());
    });
}

#[test]
fn event_count_two_consumers_bounded() {
    explore("event_count_two_consumers_bounded", Model::new().preemptions(2).choices(1), || {
        let shelf = Shelf::new();
        let consumers = [spawn(&shelf, Shelf::wait), spawn(&shelf, Shelf::wait)];
        (0..2).for_each(|_| shelf.put());
        consumers.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(shelf.is_quiet());
    });
}

#[test]
fn event_count_notify_all_bounded() {
    explore("event_count_notify_all_bounded", Model::new().preemptions(2).choices(1), || {
        let shelf = Shelf::new();
        let consumers = [spawn(&shelf, Shelf::wait), spawn(&shelf, Shelf::wait)];
        shelf.items.fetch_add(2, Relaxed);
        assert!(shelf.events.notify_all() <= 2);
        consumers.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(shelf.is_quiet());
    });
}

#[test]
fn event_count_gives_up() {
    explore("event_count_gives_up", Model::new(), || {
        let shelf = Shelf::new();
        let producer = spawn(&shelf, Shelf::put);
        let got = shelf.wait_until(some_time());
        producer.join().unwrap();
        assert!(shelf.is_quiet());
        assert_eq!(shelf.items.load(Relaxed), u32::from(!got));
    });
}

/// One of two gives up, perhaps just as it is notified: then the other one must still come to know.
#[test]
fn event_count_giving_up_swallows_nothing_bounded() {
    let model = Model::new().preemptions(2);
    explore("event_count_giving_up_swallows_nothing_bounded", model, || {
        let shelf = Shelf::new();
        let impatient = spawn(&shelf, |shelf| {
            if shelf.wait_until(some_time()) {
                // It got the other thread's item: here is another.
                shelf.put();
            }
        });
        let patient = spawn(&shelf, |shelf| {
            shelf.wait();
            // A deadline that does not pass in this execution never does.
            shelf.put();
        });
        shelf.put();
        impatient.join().unwrap();
        patient.join().unwrap();
        assert!(shelf.is_quiet());
    });
}

/// A thread that comes back for a notification sees the writes before the notification, without a
/// look at anything else.
#[test]
fn event_count_notified_is_informed() {
    struct Letter(UnsafeCell<u32>, AtomicU32, EventCount);
    // SAFETY: written before the notification, read after it; the model checks that.
    unsafe impl Sync for Letter {}
    // SAFETY: nothing in it belongs to a thread.
    unsafe impl Send for Letter {}

    explore("event_count_notified_is_informed", Model::new(), || {
        let letter = Arc::new(Letter(UnsafeCell::new(0), AtomicU32::new(0), EventCount::new()));
        let writer = {
            let letter = letter.clone();
            thread::spawn(move || {
                // SAFETY: the reader comes after the notification.
                letter.0.with_mut(|text| unsafe { *text = 5 });
                letter.1.store(1, Relaxed);
                letter.2.notify_one();
            })
        };
        let key = letter.2.prepare();
        if letter.1.load(Relaxed) == 0 {
            letter.2.wait(key);
            // SAFETY: after the notification.
            assert_eq!(letter.0.with(|text| unsafe { *text }), 5);
        } else {
            drop(key);
        }
        writer.join().unwrap();
    });
}

/// A thread that has prepared and panics takes its registration along.
#[test]
fn event_count_dropped_key() {
    explore("event_count_dropped_key", Model::new(), || {
        let shelf = Shelf::new();
        let other = spawn(&shelf, |shelf| drop(shelf.events.prepare()));
        shelf.events.notify_all();
        other.join().unwrap();
        assert!(shelf.is_quiet());
    });
}
