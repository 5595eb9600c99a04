//! Channels: rendezvous, order, ends, selections, and messages that panic when they are dropped.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stanchion_activations::sync::channel::{
    self, Receiving, RecvError, RecvTimeoutError, SendError, Sending, TryRecvError, TrySendError,
};
use stanchion_activations::{Runtime, select, spawn, yield_now};

const SOON: Duration = Duration::from_millis(2);

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3_600);

/// Calls `body` on a kernel thread, and on a user-level thread of one and of two processors.
fn on_each_kind_of_thread(body: fn()) {
    body();
    for processors in 1..=2 {
        Runtime::new(processors).unwrap().run(body);
    }
}

/// Runs `body` so often in threads of a runtime and in kernel threads, at once. Each has a number.
fn among<F>(processors: usize, threads: usize, strangers: usize, body: F)
where
    F: Fn(usize) + Send + Sync + 'static,
{
    let runtime = Runtime::new(processors).unwrap();
    let body = Arc::new(body);
    let of = |number| {
        let body = body.clone();
        move || body(number)
    };
    let inside: Vec<_> = (0..threads).map(|number| runtime.spawn(of(number))).collect();
    let outside: Vec<_> =
        (threads..threads + strangers).map(|number| std::thread::spawn(of(number))).collect();
    inside.into_iter().for_each(|thread| thread.join().unwrap());
    outside.into_iter().for_each(|stranger| stranger.join().unwrap());
}

/// Tries until `attempt` yields something.
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        yield_now();
        std::thread::yield_now();
    }
}

#[test]
fn try_recv_takes_what_a_blocked_sender_offers() {
    on_each_kind_of_thread(|| {
        let (sender, receiver) = channel::bounded(0);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        let runtime = Runtime::new(1).unwrap();
        let sends = runtime.spawn(move || sender.send(7).is_ok());
        assert_eq!(until(|| receiver.try_recv().ok()), 7);
        assert!(sends.join().unwrap());
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn a_channel_of_capacity_0_holds_nothing() {
    on_each_kind_of_thread(|| {
        let (sender, receiver) = channel::bounded(0);
        let counts = Runtime::new(1).unwrap();
        let sends = counts.spawn(move || {
            for message in 0..1_000 {
                sender.send(message).unwrap();
                assert_eq!(sender.len(), 0);
            }
        });
        for message in 0..1_000 {
            assert_eq!(receiver.recv(), Ok(message));
            assert_eq!(receiver.len(), 0);
        }
        sends.join().unwrap();
    });
}

/// Panics when it is dropped, and counts that.
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic::resume_unwind(Box::new("a message"));
    }
}

#[test]
fn a_receiver_drops_every_message_also_if_several_panic() {
    on_each_kind_of_thread(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel::unbounded();
        for _ in 0..3 {
            assert!(sender.send(Bomb(drops.clone())).is_ok());
        }
        let panicked = panic::catch_unwind(AssertUnwindSafe(|| drop(receiver))).unwrap_err();
        assert_eq!(panicked.downcast_ref(), Some(&"a message"));
        assert_eq!(drops.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn a_receiver_that_is_dropped_by_a_panic_keeps_what_its_messages_panic_with() {
    on_each_kind_of_thread(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel::unbounded();
        for _ in 0..2 {
            assert!(sender.send(Bomb(drops.clone())).is_ok());
        }
        let panicked = panic::catch_unwind(AssertUnwindSafe(move || {
            let _receiver = receiver;
            panic::resume_unwind(Box::new("the owner"));
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"the owner"));
        assert_eq!(drops.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_channel_is_full_if_it_holds_what_it_may() {
    let (sender, receiver) = channel::bounded(2);
    assert!(receiver.is_empty() && !receiver.is_full());
    sender.send(1).unwrap();
    assert!(!sender.is_empty() && !sender.is_full());
    sender.send(2).unwrap();
    assert!(sender.is_full() && receiver.is_full());
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));

    let (sender, receiver) = channel::bounded::<u32>(0);
    assert!(sender.is_empty() && sender.is_full() && receiver.is_full());

    let (sender, receiver) = channel::unbounded();
    sender.send(1).unwrap();
    assert!(!sender.is_full() && !receiver.is_full());
}

/// Spawns a thread of the calling thread's runtime, and returns when it waits in `body`, or has
/// ended.
///
/// The runtime has one processor: a thread that has come goes on until it waits.
fn spawn_and_await<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> stanchion_activations::JoinHandle<T> {
    let has_come = Arc::new(AtomicUsize::new(0));
    let comes = has_come.clone();
    let thread = spawn(move || {
        comes.store(1, Ordering::Relaxed);
        body()
    });
    until(|| (has_come.load(Ordering::Relaxed) == 1).then_some(()));
    thread
}

#[test]
fn operations_that_wait_are_served_in_the_order_in_which_they_came() {
    Runtime::new(1).unwrap().run(|| {
        let order: Vec<_> = (0..6).collect();
        for capacity in 0..3 {
            let (sender, receiver) = channel::bounded(capacity);
            let send = |&message: &u32| {
                let sender = sender.clone();
                spawn_and_await(move || sender.send(message))
            };
            let sends: Vec<_> = order.iter().map(send).collect();
            assert_eq!(receiver.len(), capacity);
            let received: Vec<_> = order.iter().map(|_| receiver.recv().unwrap()).collect();
            assert_eq!(received, order);
            sends.into_iter().for_each(|send| send.join().unwrap().unwrap());

            let receive = |_: &u32| {
                let receiver = receiver.clone();
                spawn_and_await(move || receiver.recv().unwrap())
            };
            let receives: Vec<_> = order.iter().map(receive).collect();
            order.iter().for_each(|&message| sender.send(message).unwrap());
            let received: Vec<_> =
                receives.into_iter().map(|receive| receive.join().unwrap()).collect();
            assert_eq!(received, order);
        }
    });
}

#[test]
fn a_thread_that_polls_lets_the_other_side_run() {
    Runtime::new(1).unwrap().run(|| {
        let (requests, requested) = channel::unbounded();
        let (answers, answered) = channel::unbounded();
        let polls = spawn(move || {
            while answered.try_recv().is_err() {
                requests.send(()).unwrap();
            }
        });
        requested.recv().unwrap();
        answers.send(()).unwrap();
        polls.join().unwrap();

        let (sender, receiver) = channel::bounded(0);
        let polls = spawn(move || while sender.try_send(1).is_err() {});
        assert_eq!(receiver.recv(), Ok(1));
        polls.join().unwrap();

        let (sender, receiver) = channel::bounded(0);
        let polls = spawn(move || {
            loop {
                select! {
                    recv(receiver) -> message => return message,
                    default => {}
                }
            }
        });
        sender.send(1).unwrap();
        assert_eq!(polls.join().unwrap(), Ok(1));
    });
}

#[test]
fn the_end_of_one_side_wakes_all_that_wait_on_the_other() {
    for capacity in [Some(0), Some(1), None] {
        let make = || capacity.map_or_else(channel::unbounded, channel::bounded);
        let runtime = Runtime::new(2).unwrap();
        // More than are woken under one hold of the lock.
        let (sender, receiver) = make();
        let receives: Vec<_> = (0..40)
            .map(|_| {
                let receiver = receiver.clone();
                runtime.spawn(move || receiver.recv())
            })
            .collect();
        runtime.run(yield_now);
        drop::<channel::Sender<u32>>(sender);
        assert!(receives.into_iter().all(|receive| receive.join().unwrap() == Err(RecvError)));

        let Some(capacity) = capacity else { continue };
        let (sender, receiver) = make();
        (0..capacity).for_each(|_| sender.send(0).unwrap());
        let sends: Vec<_> = (0..40)
            .map(|message| {
                let sender = sender.clone();
                runtime.spawn(move || sender.send(message))
            })
            .collect();
        runtime.run(yield_now);
        drop(receiver);
        for (message, send) in sends.into_iter().enumerate() {
            assert_eq!(send.join().unwrap(), Err(SendError(message as u32)));
        }
    }
}

#[test]
fn after_has_one_message_and_tick_has_one_each_time() {
    on_each_kind_of_thread(|| {
        let begun = Instant::now();
        let after = channel::after(SOON);
        assert_eq!(after.capacity(), Some(1));
        let other = after.clone();
        assert!(after.recv().unwrap() >= begun + SOON);
        assert!(begun.elapsed() >= SOON);
        assert_eq!(other.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));

        assert!(channel::after(LONG).is_empty());
        assert!(channel::after(Duration::ZERO).is_full());
        assert_eq!(channel::at(begun).try_recv(), Ok(begun));
        assert_eq!(channel::after(Duration::MAX).try_recv(), Err(TryRecvError::Empty));
        assert_eq!(channel::never::<u32>().recv_timeout(SOON), Err(RecvTimeoutError::Timeout));

        let mut first = Instant::now() + SOON;
        let tick = channel::tick(SOON);
        for _ in 0..3 {
            let tick = tick.recv().unwrap();
            assert!(tick >= first && tick <= Instant::now());
            first = tick + SOON;
        }
        // Late by many periods.
        std::thread::sleep(10 * SOON);
        assert_eq!(tick.len(), 1);
        let first = Instant::now() + SOON;
        assert!(tick.recv().unwrap() < first - SOON);
        assert!(tick.recv().unwrap() >= first, "moments do not pile up");
    });
}

#[test]
fn several_receivers_share_the_ticks() {
    let ticks = channel::tick(Duration::from_micros(200));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    among(2, 4, 2, move |_| {
        for _ in 0..10 {
            ticks.recv().unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 60);
}

#[test]
fn a_selection_does_one_operation() {
    on_each_kind_of_thread(|| {
        let (first, first_received) = channel::unbounded();
        let (second, second_received) = channel::bounded(1);
        second.send("full").unwrap();
        let none = select! {
            recv(first_received) -> _ => false,
            send(second, "not sent") -> _ => false,
            default => true
        };
        assert!(none);
        let late = select! {
            recv(first_received) -> _ => false,
            send(second, "not sent") -> _ => false,
            default(SOON) => true,
        };
        assert!(late);
        let timed = select! {
            recv(first_received) -> _ => None,
            recv(channel::after(SOON)) -> moment => moment.ok(),
        };
        assert!(timed.is_some_and(|moment| moment <= Instant::now()));

        first.send(1).unwrap();
        select! {
            recv(first_received) -> message => assert_eq!(message, Ok(1)),
            send(second, "not sent") -> _ => unreachable!(),
        }
        assert_eq!(second_received.recv(), Ok("full"));
        select! {
            recv(first_received) -> _ => unreachable!(),
            send(second, "sent") -> sent => assert_eq!(sent, Ok(())),
        }
        assert_eq!(second_received.try_iter().collect::<Vec<_>>(), ["sent"]);

        drop(first);
        select! { recv(first_received) -> message => assert_eq!(message, Err(RecvError)) }
        drop(second_received);
        select! { send(second, "late") -> sent => assert_eq!(sent, Err(SendError("late"))) }
    });
}

#[test]
fn a_selection_that_waits_is_woken_by_any_of_its_channels() {
    on_each_kind_of_thread(|| {
        let runtime = Runtime::new(1).unwrap();
        for chosen in 0..3 {
            let (sender, receiver) = channel::bounded(0);
            let (others, other_received) = channel::unbounded::<u32>();
            let (full, drained) = channel::bounded(1);
            full.send(0).unwrap();
            let drains = drained.clone();
            let acts = runtime.spawn(move || match chosen {
                0 => sender.send(7).map(|()| sender).is_ok(),
                1 => drains.recv().is_ok(),
                _ => {
                    drop(others);
                    true
                }
            });
            let done = select! {
                recv(receiver) -> message => {
                    assert!(chosen != 0 || message == Ok(7));
                    0
                }
                send(full, 8) -> sent => {
                    sent.unwrap();
                    1
                }
                recv(other_received) -> message => {
                    message.unwrap_err();
                    2
                }
            };
            // The ends that `acts` has left may close a channel first.
            assert!(done == chosen || chosen != 0, "{done} instead of {chosen}");
            assert!(acts.join().unwrap());
            drop(drained);
        }
    });
}

/// Both sides select on two channels of capacity 0: each pair does one and the same operation.
#[test]
fn selections_meet_each_other() {
    for processors in 1..=2 {
        const ROUNDS: usize = 500;
        let (left, left_received) = channel::bounded::<usize>(0);
        let (right, right_received) = channel::bounded::<usize>(0);
        let sums = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let shared = sums.clone();
        among(processors, 3, 1, move |number| {
            for round in 1..=ROUNDS {
                let sends = number % 2 == 0;
                let (one, other) = (&shared[0], &shared[1]);
                let moved = if sends {
                    select! {
                        send(left, round) -> sent => sent.map(|()| round).unwrap(),
                        send(right, round) -> sent => sent.map(|()| round).unwrap(),
                    }
                } else {
                    select! {
                        recv(left_received) -> message => message.unwrap(),
                        recv(right_received) -> message => message.unwrap(),
                    }
                };
                let sum = if sends { one } else { other };
                sum.fetch_add(moved, Ordering::Relaxed);
            }
        });
        let sent = sums[0].load(Ordering::Relaxed);
        assert_eq!(sent, ROUNDS * (ROUNDS + 1));
        assert_eq!(sent, sums[1].load(Ordering::Relaxed));
    }
}

/// With operations that give up, on channels with and without room, and threads of both kinds.
#[test]
fn selections_lose_nothing_to_timeouts() {
    for capacity in [0, 1] {
        let (left, left_received) = channel::bounded(capacity);
        let (right, right_received) = channel::bounded(capacity);
        let rest = (left_received.clone(), right_received.clone());
        let (sent, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (given, taken) = (sent.clone(), received.clone());
        among(2, 8, 2, move |number| {
            for round in 0..60 {
                let patience = Duration::from_micros(round % 8 * 50);
                // Some wait for both at once, to send on one channel and to receive from the other.
                let (sends, receives) = (number % 3 != 1, number % 3 != 0);
                let never = (channel::bounded(0), channel::never());
                let sender = if sends { &left } else { &never.0.0 };
                let receiver = if receives { &right_received } else { &never.1 };
                let (back, forth) = if number % 2 == 0 {
                    (&right, &left_received)
                } else {
                    (&left, &right_received)
                };
                let mut operations = (
                    Sending::new(sender, ()),
                    Receiving::new(receiver),
                    Sending::new(back, ()),
                    Receiving::new(forth),
                );
                channel::select_timeout(
                    &mut [
                        operations.0.selectable(),
                        operations.1.selectable(),
                        operations.2.selectable(),
                        operations.3.selectable(),
                    ],
                    patience,
                );
                let sends = [operations.0.into_result(), operations.2.into_result()];
                let receives = [operations.1.into_result(), operations.3.into_result()];
                let count = sends.into_iter().filter(|send| *send == Ok(Ok(()))).count();
                given.fetch_add(count, Ordering::Relaxed);
                let count = count + receives.iter().filter(|receive| receive.is_some()).count();
                assert!(count <= 1, "at most one operation is done");
                let count = receives.into_iter().filter(|receive| *receive == Some(Ok(()))).count();
                taken.fetch_add(count, Ordering::Relaxed);
            }
        });
        let left_over = rest.0.try_iter().count() + rest.1.try_iter().count();
        assert_eq!(sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed) + left_over);
    }
}

#[test]
fn a_selection_among_ready_operations_is_fair() {
    let (sender, receiver) = channel::unbounded();
    let (other, other_received) = channel::unbounded();
    let never = channel::never::<()>();
    let mut hits = [0; 3];
    for _ in 0..3_000 {
        sender.send(()).unwrap();
        other.send(()).unwrap();
        select! {
            recv(never) -> _ => unreachable!(),
            recv(receiver) -> _ => hits[0] += 1,
            recv(receiver) -> _ => hits[1] += 1,
            recv(other_received) -> _ => hits[2] += 1,
        }
    }
    assert!(hits.iter().all(|&hits| hits >= 500), "{hits:?}");
}

#[test]
fn a_selection_without_operations_gives_up_in_time() {
    assert!(!channel::try_select(&mut []));
    assert!(!channel::select_timeout(&mut [], SOON));
}

#[test]
#[should_panic(expected = "never ends")]
fn a_selection_without_operations_panics() {
    channel::select(&mut []);
}
