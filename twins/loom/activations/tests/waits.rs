//! Models of a wait at one channel or at several: the word of the waiter, and its entries in the
//! queues. A spin lock takes the place of a channel's mutex.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `waiting_to_receive` | a receive that waits, a send | its message is not seen |
//! | `waiting_to_receive_in_time` | the same, where the time may pass | a message is lost, or is there twice |
//! | `waiting_in_two_queues_bounded` | a receive that waits in two queues, two sends | it has two messages, or an entry is touched when it is gone |
//!
//! Two threads are explored without bound. Every model prints `model NAME: N executions`.

use machine::clock::Deadline;
use machine::sync::Arc;
use machine::{Model, thread as threads};
use stanchion_spin::TestAndSetMutex;

use wait::{Entries, Entry, Waiter};

#[path = "../../../../crates/activations/src/sync/channel/wait.rs"]
#[allow(dead_code)]
mod wait;

/// Threads of which nothing is asked: a waiter here looks until its wait is over.
mod thread {
    pub(crate) struct Thread;

    pub(crate) fn current() -> Thread {
        Thread
    }
}

mod park {
    use machine::clock::Deadline;
    use machine::wait::{Patient, WaitPolicy, retry_until};

    /// Waits until `is_over`. Before a deadline, a choice says whether the time passes first.
    pub(crate) fn wait_until(deadline: Deadline, mut is_over: impl FnMut() -> bool) -> bool {
        if deadline != Deadline::NEVER && machine::choice() {
            return is_over();
        }
        retry_until(|| is_over().then_some(()), &mut <Patient>::start());
        true
    }
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

    /// Sends a message to the first receive that waits; returns whether there is one.
    fn send(&self, message: u32) -> bool {
        let mut entries = self.0.lock();
        // SAFETY: under the lock.
        let served = unsafe { entries.serve_first(|place| *place = Some(message)) };
        served.map(|((), thread)| assert!(thread.is_some(), "called once")).is_some()
    }

    /// Puts a receive into the queue.
    fn push(&self, entry: &Entry<u32>, waiter: &Waiter) {
        // SAFETY: under the lock; the models take the entry out, or it is served.
        unsafe { self.0.lock().push(entry, waiter) };
    }

    /// Takes a receive out; returns what it has received.
    fn remove(&self, entry: &Entry<u32>) -> Option<u32> {
        let mut entries = self.0.lock();
        // SAFETY: under the lock.
        unsafe { entries.remove(entry) };
        drop(entries);
        received(entry)
    }
}

/// Returns what a receive has received that is in no queue any more.
fn received(entry: &Entry<u32>) -> Option<u32> {
    // SAFETY: no other thread uses it; if one does, the cell reports it.
    unsafe {
        entry.with(|content| {
            assert_eq!(content.is_done, content.message.is_some());
            content.message
        })
    }
}

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

#[test]
fn waiting_to_receive() {
    explore("waiting_to_receive", Model::new().choices(0), || {
        let queue = Queue::new();
        let (waiter, entry) = (Waiter::new(), Entry::new(None));
        queue.push(&entry, &waiter);
        let other = queue.clone();
        let sends = threads::spawn(move || other.send(7));
        assert!(waiter.wait(Deadline::NEVER));
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
        let sends = threads::spawn(move || other.send(7));
        let is_served = waiter.wait(Deadline::PAST);
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
            threads::spawn(move || queue.send(index as u32))
        });
        let is_served = waiter.wait(Deadline::PAST);
        let messages = [queues[0].remove(&entries[0]), queues[1].remove(&entries[1])];
        let sent = sends.map(|send| send.join().unwrap());
        assert_eq!(sent, messages.map(|message| message.is_some()));
        assert_eq!(sent.into_iter().filter(|&sent| sent).count(), usize::from(is_served));
    });
}
