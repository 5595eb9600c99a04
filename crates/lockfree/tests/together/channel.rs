//! Channels: halves that close when they are dropped, iterators, and messages without a receiver.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::values::Ledger;
use stanchion_lockfree::blocking::IntoIter;
use stanchion_lockfree::queue::{FaaArrayQueue, NikolaevQueue};
use stanchion_lockfree::{
    Receiver, RecvError, RecvTimeoutError, SendError, SendTimeoutError, Sender, TryRecvError,
    TrySendError, channel, channel_with_queue, sync_channel,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

// A message need not be shared, only sent.
assert_impl_all!(Sender<std::cell::Cell<u32>>: Send, Sync, Clone, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Receiver<std::cell::Cell<u32>>: Send, Sync, Clone, UnwindSafe, RefUnwindSafe);
assert_impl_all!(IntoIter<std::cell::Cell<u32>>: Send);
assert_not_impl_any!(Sender<Rc<u32>>: Send, Sync);
assert_not_impl_any!(Receiver<Rc<u32>>: Send, Sync);

#[test]
fn receivers_take_what_is_left_when_the_senders_are_gone() {
    let (sender, receiver) = channel();
    let other = sender.clone();
    sender.send(1).unwrap();
    other.send(2).unwrap();
    drop(sender);
    assert_eq!(receiver.try_recv(), Ok(1));
    other.try_send(3).unwrap();
    drop(other);
    assert_eq!(receiver.recv(), Ok(2));
    assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(3));
    assert_eq!(receiver.recv(), Err(RecvError));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(receiver.recv_timeout(Duration::MAX), Err(RecvTimeoutError::Disconnected));
    assert_eq!(receiver.recv_deadline(Instant::now()), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn sends_fail_when_the_receivers_are_gone() {
    let (sender, receiver) = sync_channel(1);
    let other = receiver.clone();
    drop(receiver);
    sender.send(1).unwrap();
    let soon = Duration::from_millis(1);
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    assert_eq!(sender.send_timeout(2, soon), Err(SendTimeoutError::Timeout(2)));
    assert_eq!(sender.send_deadline(2, Instant::now()), Err(SendTimeoutError::Timeout(2)));
    assert_eq!(other.recv(), Ok(1));
    assert_eq!(other.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(other.recv_timeout(soon), Err(RecvTimeoutError::Timeout));
    drop(other);
    assert_eq!(sender.send(3), Err(SendError(3)));
    assert_eq!(sender.try_send(3), Err(TrySendError::Disconnected(3)));
    assert_eq!(sender.send_timeout(3, soon), Err(SendTimeoutError::Disconnected(3)));
}

#[test]
fn dropping_the_last_half_wakes_the_threads_that_wait() {
    for _ in 0..50 {
        let (sender, receiver) = channel::<u32>();
        let waits = thread::spawn(move || receiver.recv());
        drop(sender);
        assert_eq!(waits.join().unwrap(), Err(RecvError));
        let (sender, receiver) = sync_channel(1);
        sender.send(1).unwrap();
        let waits = thread::spawn(move || sender.send(2));
        drop(receiver);
        assert_eq!(waits.join().unwrap(), Err(SendError(2)));
    }
}

#[test]
fn iterators_end_with_the_senders() {
    let (sender, receiver) = channel();
    let other = receiver.clone();
    assert_eq!(receiver.try_iter().next(), None);
    (1..=3).for_each(|number| sender.send(number).unwrap());
    let mut now = receiver.try_iter();
    assert_eq!((now.next(), now.clone().next()), (Some(1), Some(2)));
    drop(sender);
    let mut all = (&receiver).into_iter();
    assert_eq!((all.next(), all.next()), (Some(3), None));
    assert_eq!(receiver.iter().next(), None);
    assert_eq!(other.into_iter().next(), None);
    assert_eq!(format!("{receiver:?}"), "Receiver { closed: true, .. }");
    assert_eq!(format!("{:?}", receiver.iter()), "Iter { closed: true, .. }");
    assert_eq!(format!("{:?}", receiver.try_iter()), "TryIter { closed: true, .. }");
    let owned = receiver.into_iter();
    assert_eq!(format!("{owned:?}"), "IntoIter(Receiver { closed: true, .. })");
}

#[test]
fn halves_know_their_channel() {
    let (sender, receiver) = channel_with_queue(NikolaevQueue::with_capacity(3));
    let (strange, _receiver) = channel_with_queue(NikolaevQueue::<u32>::with_capacity(3));
    assert!(sender.same_channel(&sender.clone()) && !sender.same_channel(&strange));
    assert!(receiver.same_channel(&receiver.clone()));
    assert!(sender.is_empty() && receiver.is_empty());
    sender.send(1).unwrap();
    assert!(!sender.is_empty() && !receiver.is_empty());
    assert_eq!((sender.capacity(), receiver.capacity()), (Some(3), Some(3)));
    assert_eq!(format!("{sender:?}"), "Sender { closed: false, .. }");
}

#[test]
fn every_message_is_received_once() {
    const EACH: usize = 2_000;
    let (sender, receiver) = channel_with_queue(FaaArrayQueue::new());
    let (sum, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            let (sender, receiver) = (sender.clone(), receiver.clone());
            scope.spawn(move || (1..=EACH).for_each(|number| sender.send(number).unwrap()));
            let (sum, count) = (&sum, &count);
            scope.spawn(move || {
                for number in receiver {
                    sum.fetch_add(number, Relaxed);
                    count.fetch_add(1, Relaxed);
                }
            });
        }
        drop(sender);
    });
    assert_eq!(count.into_inner(), 3 * EACH);
    assert_eq!(sum.into_inner(), 3 * EACH * (EACH + 1) / 2);
}

/// Messages that the last receiver leaves are dropped though there is a sender. So are those that
/// are sent at the same time.
#[test]
fn messages_without_a_receiver_are_dropped() {
    for round in 0..400 {
        let ledger = Ledger::new(3_000);
        let (sender, receiver) = channel();
        for key in 0..10 {
            sender.send(ledger.value(key)).unwrap();
        }
        let together = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    together.wait();
                    for key in 0..1_400 {
                        if sender.send(ledger.value(key)).is_err() {
                            return;
                        }
                    }
                });
            }
            together.wait();
            (0..round).for_each(|_| std::hint::spin_loop());
            drop(receiver);
        });
        ledger.assert_settled("a channel without receivers");
        drop(sender);
    }
}

/// The message would own itself, were it not dropped with the last receiver.
#[test]
fn a_message_may_own_a_sender_of_its_channel() {
    struct Message(Option<Sender<Message>>, crate::values::Value);
    let ledger = Ledger::new(2);
    let (sender, receiver) = channel();
    let message = Message(Some(sender.clone()), ledger.value(0));
    assert!(sender.send(message).is_ok());
    assert!(sender.send(Message(None, ledger.value(1))).is_ok());
    drop(sender);
    let first = receiver.recv().unwrap();
    assert!(first.0.is_some() && first.1.number() == 0);
    drop(receiver);
    assert!(first.0.as_ref().is_some_and(|sender| sender.is_empty()));
    drop(first);
    ledger.assert_settled("a message with a sender");
}

#[test]
fn a_panic_in_a_drop_costs_no_other_message_its_own() {
    let ledger = Ledger::new(5);
    let (sender, receiver) = channel();
    for key in 0..5 {
        assert!(sender.send(ledger.value_that(key, key == 2)).is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
    ledger.assert_settled("a channel with a message that breaks");
    assert!(sender.is_empty());
}

#[test]
#[should_panic(expected = "capacity 0")]
fn a_channel_without_room_is_refused() {
    let _ = sync_channel::<u32>(0);
}
