//! The locks and channels on the simulated machines, under schedules that a seed chooses.
//! User-level threads use them, and kernel threads that do not belong to the runtime.
//!
//! There are more kernel threads than processors, so slices end in the middle of everything. A
//! thread in the middle of a critical section computes there, yields, or blocks in the kernel. A
//! wake-up that is lost leaves a thread waiting for ever, which is a deadlock in virtual time, and
//! is reported as such. Errors that take a memory ordering are for loom
//! (`crates/loom/activations/tests/together/sync.rs`).
//!
//! Each scene, and the failure that it looks for:
//!
//! - a mutex, by each way to wait for it; some give up in time: two have it; a release wakes no
//!   waiter, or one that has given up;
//! - a condition: places that are filled and emptied, by two conditions, some waits by time: a
//!   notification is lost, or goes to a waiter that has given up;
//! - the same by one condition, and all are notified: the same, where they are moved from line to
//!   line;
//! - the same, where each waits for its turn: a notification that comes between a waiter's release
//!   and its sleep is lost;
//! - permits, one or more at a time; some give up in time: more are out than there are;
//! - the same, while most of them stay out: a waiter that gives up in front keeps the line
//!   standing;
//! - a barrier, again and again: one passes before all have come; two lead, or none;
//! - a channel without places, with one, with some, with any number; one side leaves: a message is
//!   lost, or comes twice, or out of order; a receiver that waits for the last sender waits for
//!   ever;
//! - the same, where each receiver takes its share: a message lies there, and its receiver is not
//!   woken;
//! - a channel without places, with senders and receivers that give up in time: a message was sent
//!   and not received.

use std::time::Duration;

use stanchion_activations_simulated::sync::channel::{self, Receiver, Sender};
use stanchion_activations_simulated::sync::{Barrier, Condvar, Mutex, PolicyMutex, Semaphore};
use stanchion_activations_simulated::{Runtime, yield_now};
use stanchion_competitive::Policy;
use stanchion_competitive::policy::{Adaptive, AlwaysBlock, AlwaysSpin, HolderAware};
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering::Relaxed};
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;
use stanchion_simulator::{Arena, Machine, Simulation, Time, machines};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// Seeds of each scene.
const SEEDS: u64 = 64;

/// The users: user-level threads, and kernel threads that are no workers.
const INSIDE: u32 = 6;
const OUTSIDE: u32 = 3;
const ALL: u32 = INSIDE + OUTSIDE;

fn machine(seed: u64) -> Machine {
    let mut machine = machines::modern([2, 1, 4, 3][seed as usize % 4]);
    machine.scheduling.quantum = Time::nanos(3_000 + 1_237 * (seed % 17));
    machine.scheduling.spawn = Time::nanos(400 * (seed % 9));
    machine
}

/// Runs `body` with the number of each user, in as many threads as there are; then `end`.
fn among<S, B>(name: &str, make: fn() -> S, body: B, end: fn(&S))
where
    S: Send + Sync + 'static,
    B: Fn(&S, u32) + Send + Sync + Copy + 'static,
{
    for seed in 0..SEEDS {
        let run = move || {
            let runtime = Runtime::builder()
                .processors(1 + (seed / 4) as usize % 4)
                .spare_kernel_threads((seed % 5) as usize)
                .stack_size(256 * 1024)
                .build()
                .expect("simulated threads are free");
            let shared = Arc::new(make());
            let inside: Vec<_> = (0..INSIDE)
                .map(|number| {
                    let shared = shared.clone();
                    runtime.spawn(move || body(&shared, number))
                })
                .collect();
            let outside: Vec<_> = (INSIDE..ALL)
                .map(|number| {
                    let shared = shared.clone();
                    thread::spawn(move || body(&shared, number))
                })
                .collect();
            inside.into_iter().for_each(|thread| thread.join().expect("no panic"));
            outside.into_iter().for_each(|thread| thread.join().expect("no panic"));
            end(&shared);
        };
        if let Err(failure) = Simulation::new(machine(seed)).seed(seed).run(run) {
            panic!("{name}, seed {seed}: {failure}");
        }
    }
}

/// Up to `most`, by the seed.
fn any(most: u64) -> u64 {
    stanchion_machine::hint::entropy() % most
}

/// A time to wait for, now and then none.
fn patience() -> Duration {
    Duration::from_nanos(any(40_000).saturating_sub(4_000))
}

/// Does what a thread does now and then wherever it is: it computes, lets others run, or blocks in
/// the kernel.
fn dawdle() {
    match any(8) {
        0 => thread::sleep(Duration::from_nanos(any(60_000))),
        1 => yield_now(),
        2 | 3 => stanchion_machine::work(any(12_000)),
        _ => stanchion_machine::work(any(900)),
    }
}

/// A section for one thread at a time.
#[derive(Default)]
struct Room {
    /// True while a thread is in the section. The holder of the lock writes it.
    taken: bool,
    /// The number of visits. The holder of the lock adds one.
    visits: u32,
}

impl Room {
    fn visit(&mut self) {
        assert!(!std::mem::replace(&mut self.taken, true), "two are in it");
        dawdle();
        self.visits += 1;
        self.taken = false;
    }
}

fn excludes<P: Policy + Send + Sync + 'static>(name: &str) {
    among(
        name,
        || (PolicyMutex::<Room, P>::new(Room::default()), AtomicU32::fresh(0)),
        |(room, visits), _| {
            for _ in 0..8 {
                let entered = match any(3) {
                    0 => room.try_lock_for(patience()),
                    _ => Some(room.lock()),
                };
                if let Some(mut room) = entered {
                    room.visit();
                    visits.fetch_add(1, Relaxed);
                }
                dawdle();
            }
        },
        |(room, visits)| {
            let room = room.try_lock().expect("no thread has it any more");
            assert_eq!(room.visits, visits.load(Relaxed));
        },
    );
}

#[test]
fn a_mutex_by_default() {
    excludes::<Adaptive>("a mutex");
}

#[test]
fn mutex_with_waiters_that_never_spin() {
    excludes::<AlwaysBlock>("a mutex, never spinning");
}

#[test]
fn mutex_with_waiters_that_always_spin() {
    excludes::<AlwaysSpin>("a mutex, always spinning");
}

#[test]
fn mutex_with_waiters_that_look_for_the_holder() {
    excludes::<HolderAware>("a mutex, fetching");
}

/// Two places, filled by some and emptied by others.
struct Places {
    /// The number of full places. The thread that fills or empties one writes it.
    full: Mutex<u32>,
    /// Notified by a thread that has filled a place.
    filled: Condvar,
    /// Notified by a thread that has emptied a place.
    emptied: Condvar,
}

const PLACES: u32 = 2;
const ROUNDS: u32 = 6;

impl Places {
    fn new() -> Self {
        Self { full: Mutex::new(0), filled: Condvar::new(), emptied: Condvar::new() }
    }

    /// Waits on that condition until `can`, in steps by time now and then; then does it, in the
    /// middle of which others may want to.
    fn step(&self, waits: &Condvar, can: fn(u32) -> bool, change: fn(u32) -> u32) {
        let mut full = self.full.lock();
        while !can(*full) {
            if any(4) == 0 {
                waits.wait_for(&mut full, patience());
            } else {
                waits.wait(&mut full);
            }
        }
        let before = *full;
        dawdle();
        *full = change(before);
    }
}

/// As many fill as empty: the last one of an odd number does both.
fn fills_and_empties(number: u32, round: u32) -> bool {
    if number == ALL - 1 { round.is_multiple_of(2) } else { number.is_multiple_of(2) }
}

#[test]
fn two_conditions() {
    among(
        "two conditions",
        Places::new,
        |places, number| {
            for round in 0..ROUNDS {
                if fills_and_empties(number, round) {
                    places.step(&places.emptied, |full| full < PLACES, |full| full + 1);
                    places.filled.notify_one();
                } else {
                    places.step(&places.filled, |full| full > 0, |full| full - 1);
                    places.emptied.notify_one();
                }
                dawdle();
            }
        },
        |places| assert_eq!(*places.full.lock(), 0),
    );
}

#[test]
fn one_condition_for_all() {
    among(
        "one condition for all",
        Places::new,
        |places, number| {
            for round in 0..ROUNDS {
                if fills_and_empties(number, round) {
                    places.step(&places.filled, |full| full < PLACES, |full| full + 1);
                } else {
                    places.step(&places.filled, |full| full > 0, |full| full - 1);
                }
                places.filled.notify_all();
                dawdle();
            }
        },
        |places| assert_eq!(*places.full.lock(), 0),
    );
}

#[test]
fn turns() {
    among(
        "turns",
        || (Mutex::new(0), Condvar::new()),
        |(turn, changed), number| {
            for round in 0..ROUNDS {
                let mut turn = turn.lock();
                changed.wait_while(&mut turn, |turn| *turn != round * ALL + number);
                *turn += 1;
                drop(turn);
                changed.notify_all();
                dawdle();
            }
        },
        |(turn, _)| assert_eq!(*turn.lock(), ROUNDS * ALL),
    );
}

const PERMITS: u32 = 3;

#[test]
fn permits() {
    among(
        "permits",
        || (Semaphore::new(PERMITS), AtomicU32::fresh(0)),
        |(semaphore, out), _| {
            for _ in 0..8 {
                let count = 1 + any(PERMITS.into()) as u32;
                let permits = match any(3) {
                    0 => semaphore.try_acquire_many_for(count, patience()),
                    1 => semaphore.try_acquire_many(count),
                    _ => Some(semaphore.acquire_many(count)),
                };
                if let Some(permits) = permits {
                    assert!(out.fetch_add(count, Relaxed) + count <= PERMITS);
                    dawdle();
                    out.fetch_sub(count, Relaxed);
                    drop(permits);
                }
                dawdle();
            }
        },
        |(semaphore, _)| {
            assert!(semaphore.try_acquire_many(PERMITS).is_some(), "all are back, and no line");
        },
    );
}

/// One keeps all but one of them until the others have had that one; of these some want more,
/// which they do not get.
#[test]
fn permits_of_which_most_stay_out() {
    among(
        "permits of which most stay out",
        || (Semaphore::new(PERMITS), Barrier::new(ALL as usize)),
        |(semaphore, barrier), number| {
            if number == 0 {
                let _most = semaphore.acquire_many(PERMITS - 1);
                barrier.wait();
                barrier.wait();
                return;
            }
            barrier.wait();
            if number.is_multiple_of(2) {
                let all = semaphore.try_acquire_many_for(PERMITS, patience());
                assert!(all.is_none(), "the first has most of them");
            } else {
                stanchion_machine::work(any(9_000));
                let _one = semaphore.acquire();
                stanchion_machine::work(any(9_000));
            }
            barrier.wait();
        },
        |(semaphore, _)| assert_eq!(semaphore.available_permits(), PERMITS),
    );
}

#[test]
fn a_barrier() {
    among(
        "a barrier",
        || (Barrier::new(ALL as usize), AtomicU32::fresh(0), AtomicU32::fresh(0)),
        |(barrier, came, leaders), _| {
            for round in 1..=ROUNDS {
                dawdle();
                came.fetch_add(1, Relaxed);
                leaders.fetch_add(barrier.wait().is_leader().into(), Relaxed);
                // No thread comes a second time before all have looked.
                assert_eq!(came.load(Relaxed), ALL * round);
                barrier.wait();
            }
        },
        |(_, _, leaders)| assert_eq!(leaders.load(Relaxed), ROUNDS),
    );
}

/// The sender of a message, and the number among its messages.
type Message = (u32, u32);
/// Either end, or both.
type Taken = (Option<Sender<Message>>, Option<Receiver<Message>>);

/// Both ends, of which each user takes its own; then there are no others.
struct Ends {
    /// The number of messages that have come, and of those that are left.
    left: Mutex<(u32, Taken)>,
    /// The sum of what has been received. Each receiver adds to it.
    sum: AtomicU64,
}

const MESSAGES: u32 = 8;
const SENDERS: u32 = 5;

impl Ends {
    fn new((sender, receiver): (Sender<Message>, Receiver<Message>)) -> Self {
        Self { left: Mutex::new((0, (Some(sender), Some(receiver)))), sum: AtomicU64::fresh(0) }
    }

    fn take(&self, sends: bool) -> Taken {
        let mut left = self.left.lock();
        let (sender, receiver) = left.1.clone();
        left.0 += 1;
        if left.0 == ALL {
            left.1 = (None, None);
        }
        (sender.filter(|_| sends), receiver.filter(|_| !sends))
    }

    /// Sends or receives; `most` messages, if there are so many.
    fn use_one(&self, number: u32, most: usize) {
        // Some of either are kernel threads.
        match self.take(number * 2 % ALL < SENDERS) {
            (Some(sender), _) => {
                for message in 0..MESSAGES {
                    dawdle();
                    sender.send((number, message)).expect("there are receivers");
                }
            }
            (_, Some(receiver)) => {
                let mut last = [None; ALL as usize];
                for (from, message) in receiver.iter().take(most) {
                    let before = last[from as usize].replace(message);
                    assert!(before < Some(message), "out of order");
                    self.sum.fetch_add(u64::from(message) + 1, Relaxed);
                    dawdle();
                }
            }
            _ => unreachable!("the last one takes them away"),
        }
    }

    fn must_have_come(&self) {
        let each = u64::from(MESSAGES * (MESSAGES + 1) / 2);
        assert_eq!(self.sum.load(Relaxed), u64::from(SENDERS) * each);
    }
}

fn passes_on(name: &str, make: fn() -> Ends) {
    const SHARE: usize = (SENDERS * MESSAGES / (ALL - SENDERS)) as usize;
    among(name, make, |ends, number| ends.use_one(number, usize::MAX), Ends::must_have_come);
    let name = &format!("{name}, in shares");
    among(name, make, |ends, number| ends.use_one(number, SHARE), Ends::must_have_come);
}

#[test]
fn a_channel_without_places() {
    passes_on("a channel without places", || Ends::new(channel::bounded(0)));
}

#[test]
fn a_channel_with_a_place() {
    passes_on("a channel with a place", || Ends::new(channel::bounded(1)));
}

#[test]
fn a_channel_with_places() {
    passes_on("a channel with places", || Ends::new(channel::bounded(4)));
}

#[test]
fn a_channel_of_any_number() {
    passes_on("a channel of any number", || Ends::new(channel::unbounded()));
}

#[test]
fn channel_with_users_that_give_up() {
    among(
        "a channel with users that give up",
        || (channel::bounded(0), AtomicU32::fresh(0), AtomicU32::fresh(0)),
        |((sender, receiver), sent, received), number| {
            for _ in 0..8 {
                if number.is_multiple_of(2) {
                    let gone = sender.send_timeout((), patience()).is_ok();
                    sent.fetch_add(gone.into(), Relaxed);
                } else {
                    let come = receiver.recv_timeout(patience()).is_ok();
                    received.fetch_add(come.into(), Relaxed);
                }
                dawdle();
            }
        },
        |(_, sent, received)| assert_eq!(sent.load(Relaxed), received.load(Relaxed)),
    );
}
