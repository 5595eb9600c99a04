//! Models of a wait at one channel or at several: the word of the waiter, and its entries in the
//! queues. A spin lock takes the place of a channel's mutex.
//!
//! - `waiting_to_receive`. Threads: a receive that waits, a send. Failure it looks for: its
//!   message is not seen.
//! - `waiting_to_receive_in_time`. Threads: the same, where the time may pass. Failure it looks
//!   for: a message is lost, or is there twice.
//! - `waiting_in_two_queues_bounded`. Threads: a receive that waits in two queues, two sends.
//!   Failure it looks for: it has two messages, or an entry is used when it is gone.
//!
//! Two threads are explored without bound. Every model prints `model NAME: N executions`.

use stanchion_activations_loom::__internal::{Entries, Entry, Waiter};
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, WaitPolicy, retry_until};
use stanchion_machine::{Model, thread};
use stanchion_models::explore;
use stanchion_spin::TestAndSetMutex;

/// Waits as [`Waiter::wait`] does, but looks until the wait is over. Before a deadline, a choice
/// says whether the time passes first.
fn wait(waiter: &Waiter, deadline: Deadline) -> bool {
    if deadline != Deadline::NEVER && stanchion_machine::choice() {
        if waiter.is_served() {
            return true;
        }
        if waiter.give_up() {
            return false;
        }
    }
    retry_until(|| waiter.is_served().then_some(()), &mut <Patient>::start());
    true
}

/// The queue of a channel: the receives that wait.
struct Queue(TestAndSetMutex<Entries<u32>>);

// SAFETY: the entries stay as long as they are in the queue; the models see to that.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    fn new() -> Arc<Self> {
        Arc::new(Self(TestAndSetMutex::new(Entries::new())))
    }

    /// Sends a message to the first receive that waits. Returns whether there is one.
    fn send(&self, message: u32) -> bool {
        let mut entries = self.0.lock();
        // SAFETY: under the lock.
        let served = unsafe { entries.serve_first(|place| *place = Some(message)) };
        served.map(|((), thread)| assert!(thread.is_some(), "notified once")).is_some()
    }

    /// Puts a receive into the queue.
    fn push(&self, entry: &Entry<u32>, waiter: &Waiter) {
        // SAFETY: under the lock; the models take the entry out, or it is served.
        unsafe { self.0.lock().push(entry, waiter) };
    }

    /// Takes a receive out. Returns the message that it has received.
    fn remove(&self, entry: &Entry<u32>) -> Option<u32> {
        let mut entries = self.0.lock();
        // SAFETY: under the lock.
        unsafe { entries.remove(entry) };
        drop(entries);
        received(entry)
    }
}

/// Returns the message of a receive that is in no queue any more.
fn received(entry: &Entry<u32>) -> Option<u32> {
    // SAFETY: no other thread uses it; if one does, the cell reports it.
    unsafe {
        entry.with(|content| {
            assert_eq!(content.is_done, content.message.is_some());
            content.message
        })
    }
}

#[test]
fn waiting_to_receive() {
    explore("waiting_to_receive", Model::new().choices(0), || {
        let queue = Queue::new();
        let (waiter, entry) = (Waiter::new(), Entry::new(None));
        queue.push(&entry, &waiter);
        let other = queue.clone();
        let sends = thread::spawn(move || other.send(7));
        assert!(wait(&waiter, Deadline::NEVER));
        assert_eq!(received(&entry), Some(7));
        assert!(sends.join().unwrap());
    });
}

#[test]
fn waiting_to_receive_in_time() {
    explore("waiting_to_receive_in_time", Model::new().choices(1), || {
        let queue = Queue::new();
        let (waiter, entry) = (Waiter::new(), Entry::new(None));
        queue.push(&entry, &waiter);
        let other = queue.clone();
        let sends = thread::spawn(move || other.send(7));
        let is_served = wait(&waiter, Deadline::PAST);
        let message = if is_served { received(&entry) } else { queue.remove(&entry) };
        assert_eq!(message, is_served.then_some(7));
        assert_eq!(sends.join().unwrap(), is_served);
    });
}

#[test]
fn waiting_in_two_queues_bounded() {
    let model = Model::new().choices(1).preemptions(2);
    explore("waiting_in_two_queues_bounded", model, || {
        let queues = [Queue::new(), Queue::new()];
        let (waiter, entries) = (Waiter::new(), [Entry::new(None), Entry::new(None)]);
        queues[0].push(&entries[0], &waiter);
        queues[1].push(&entries[1], &waiter);
        let sends = [0, 1].map(|index| {
            let queue = queues[index].clone();
            thread::spawn(move || queue.send(index as u32))
        });
        let is_served = wait(&waiter, Deadline::PAST);
        let messages = [queues[0].remove(&entries[0]), queues[1].remove(&entries[1])];
        let sent = sends.map(|send| send.join().unwrap());
        assert_eq!(sent, messages.map(|message| message.is_some()));
        assert_eq!(sent.into_iter().filter(|&sent| sent).count(), usize::from(is_served));
    });
}
