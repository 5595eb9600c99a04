//! The operations, in the order of the crates and of their docs. Spin locks, policies, structures,
//! strategies and barriers are those of the tables of their crates.

use core::cell::{Cell, RefCell};
use core::time::Duration;

use activations::{Runtime, current, park, spawn};
use competitive::policy::Adaptive;
use competitive::{EventCount, Once, OnceLock, RawPolicyMutex, RawRwLock, Semaphore};
use gang::Waiter;
use gang::barrier::Barrier;
use lock_api::{Mutex, RawMutex, RwLock};
use lockfree::barging::Barging;
use lockfree::{ConcurrentQueue, ConcurrentStack, Counter, PriorityQueue};
use spin::{Mcs, TestAndSet, Ticket};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;
use stanchion_machine::sync::Arc;

use threadpool::strategy::{Fifo, LocalReadyQueue, Random};
use threadpool::{Plan, Strategy, WorkerSlot};

use crate::operation::{Operation, Round, alike};

/// Returns the nanoseconds for which a thread holds a lock, and for which it then stays away. If
/// both were 0, one thread would take the lock again before another thread has seen it free. If
/// there is one thread, both are 0, so that the cost is the lock's.
fn stay(threads: usize) -> u64 {
    if threads > 1 { 25 } else { 0 }
}

/// Holds a lock, or stays away from it.
fn rest(stay: u64) {
    if stay > 0 {
        stanchion_machine::work(stay);
    }
}

fn locks<R: RawMutex + Send + Sync + 'static>(threads: usize) -> Vec<Round> {
    alike(
        threads,
        || (Mutex::<R, ()>::new(()), stay(threads)),
        |(mutex, stay)| {
            let guard = mutex.lock();
            rest(*stay);
            drop(guard);
            rest(*stay);
        },
    )
}

fn counters<C>(threads: usize, make: impl FnOnce() -> C) -> Vec<Round>
where
    C: Counter + Send + Sync + 'static,
{
    alike(threads, make, C::increment)
}

/// Makes rounds of a push and a pop on a queue that is empty at first.
fn queues<Q>(threads: usize, make: impl FnOnce() -> Q) -> Vec<Round>
where
    Q: ConcurrentQueue<Item = u64> + Send + Sync + 'static,
{
    alike(threads, make, |queue| {
        let _ = queue.try_push(1);
        let _ = queue.pop();
    })
}

/// Makes the same rounds on a stack.
fn stacks<S>(threads: usize, make: impl FnOnce() -> S) -> Vec<Round>
where
    S: ConcurrentStack<Item = u64> + Send + Sync + 'static,
{
    alike(threads, make, |stack| {
        stack.push(1);
        let _ = stack.pop();
    })
}

/// Makes the same rounds on a heap.
fn heaps<H>(threads: usize, make: impl FnOnce() -> H) -> Vec<Round>
where
    H: PriorityQueue<Key = u64, Value = u64> + Send + Sync + 'static,
{
    alike(threads, make, |heap| {
        heap.push(1, 1);
        let _ = heap.pop_min();
    })
}

fn tries<R: RawMutex + Send + Sync + 'static>(threads: usize) -> Vec<Round> {
    alike(threads, || Mutex::<R, ()>::new(()), |mutex| drop(mutex.try_lock()))
}

/// Makes rounds of a task's life: a worker slot creates a task, finishes the previous one, and
/// starts the task that it finds.
fn tasks<S: Strategy>(threads: usize) -> Vec<Round> {
    let strategy = Arc::new(S::new(&Plan::new(threads)));
    let round = |index| {
        let strategy = strategy.clone();
        let running = Cell::new(None);
        let round = move || {
            // SAFETY: only one thread runs the rounds with this index, and this is its only slot
            // for this strategy.
            let place = unsafe { WorkerSlot::new(index) };
            let _ = strategy.create(Some(&place), |_| {});
            running.set(strategy.next(&place, running.take(), &mut None));
        };
        Box::new(round) as Round
    };
    (0..threads).map(round).collect()
}

/// Makes rounds of one crossing of a barrier.
fn crossings<B: Barrier + 'static>(threads: usize) -> Vec<Round> {
    let barrier = Arc::new(B::with_members(threads).expect("no more than 64"));
    let round = |waiter| {
        let waiter: RefCell<Waiter<Arc<B>>> = RefCell::new(waiter);
        Box::new(move || {
            let _ = waiter.borrow_mut().wait().expect("it is whole");
        }) as Round
    };
    Waiter::all(barrier).into_iter().map(round).collect()
}

/// The number of times that a user-level thread repeats the measured operation in one round. To
/// enter the runtime and leave it again costs a switch between kernel threads, once a round.
const REPEATS: usize = 8;

/// Makes rounds that run `body` in user-level threads of one runtime. It has as many processors as
/// the machine.
fn in_runtime(threads: usize, body: fn()) -> Vec<Round> {
    let make = move || {
        let builder = Runtime::builder().processors(threads).stack_size(256 * 1024);
        let builder = builder.idle_spin(Duration::ZERO).activations(false);
        (builder.build().expect("simulated kernel threads are never refused"), body)
    };
    alike(threads, make, |(runtime, body)| runtime.run(*body))
}

/// Makes rounds of a fork: a thread makes another thread, which does nothing, and joins it.
fn forks(threads: usize) -> Vec<Round> {
    in_runtime(threads, || {
        for _ in 0..REPEATS {
            spawn(|| ()).join().expect("no panic");
        }
    })
}

/// Makes rounds of a signal and a wait: a thread wakes its partner, and waits until the partner
/// wakes it.
fn signals(threads: usize) -> Vec<Round> {
    in_runtime(threads, || {
        let first = current();
        let second = spawn(move || {
            for _ in 0..REPEATS {
                park();
                first.unpark();
            }
        });
        for _ in 0..REPEATS {
            second.thread().unpark();
            park();
        }
        second.join().expect("no panic");
    })
}

macro_rules! operations {
    ($($name:expr => $set_up:expr),+ $(,)?) => {
        vec![$(Operation { name: $name, set_up: $set_up }),+]
    };
}

/// Expands to the operations of the spin locks of the table.
macro_rules! spin_locks {
    ([] $({
        $name:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        $($rest:tt)*
    })+) => {
        operations! { $(concat!("spin::", $written, " lock, unlock") => locks::<$lock>),+ }
    };
}

/// Expands to the operations of the mutexes of the policies of the table. Not to that of the
/// default, which is `Mutex`.
macro_rules! mutexes {
    ([] $({
        $test:ident: $policy:ty,
        name: $written:literal,
        public: [$($public:ident $(::$new:ident)?)?],
        $($rest:tt)*
    })+) => {{
        let mut operations = operations! {$($(
            concat!("PolicyMutex<", stringify!($public), "> lock, unlock") => locks::<RawPolicyMutex<$policy>>,
        )?)+};
        operations.retain(|operation| !operation.name.contains("<Adaptive>"));
        operations
    }};
}

/// Expands to the operations of the structures of one kind of the table.
macro_rules! structures {
    ([$rounds:ident $new:ident $room:tt] $({
        $test:ident: $type:ty,
        name: $name:literal,
        cost: [$($cost:literal)?]
    })+) => {
        operations! {$($($cost => |threads| $rounds(threads, || <$type>::$new $room),)?)+}
    };
}

/// Expands to the operations of the barriers of the table.
macro_rules! barriers {
    ([] $({ $test:ident: $barrier:ty, name: $name:literal, $($rest:tt)* })+) => {
        operations! { $(concat!("barrier::", $name, " wait") => crossings::<$barrier>),+ }
    };
}

/// Expands to the operations of the strategies of the table.
macro_rules! strategies {
    ([] $({
        $test:ident: $strategy:ty,
        type: $type:ident,
        cost: $name:literal,
        $($rest:tt)*
    })+) => {
        operations! { $(concat!($name, " create, next") => tasks::<$strategy>),+ }
    };
}

/// Returns the operations of the strategies. The local ready queues with random placement stand
/// behind those without.
fn strategies() -> Vec<Operation> {
    let mut operations: Vec<Operation> = threadpool::__strategies!(strategies, lock: TestAndSet);
    let random = Operation {
        name: "LocalReadyQueue<TestAndSet, Fifo, Random> create, next",
        set_up: tasks::<LocalReadyQueue<TestAndSet, Fifo, Random>>,
    };
    let own = |operation: &Operation| operation.name.starts_with("LocalReadyQueue");
    let own = operations.iter().position(own).expect("it is in the table");
    operations.insert(own + 1, random);
    operations
}

/// Returns the operations of the spin locks. An attempt stands behind the acquisitions of its lock.
fn spin_locks() -> Vec<Operation> {
    let mut operations: Vec<Operation> = spin::__locks!(spin_locks);
    let attempts = operations! {
        "spin::TestAndSet try_lock, unlock" => tries::<TestAndSet>,
        "spin::Ticket try_lock, unlock" => tries::<Ticket>,
        "spin::Mcs try_lock, unlock" => tries::<Mcs>,
    };
    for attempt in attempts {
        let lock = attempt.name.trim_end_matches(" try_lock, unlock");
        let of_the_lock = |operation: &Operation| operation.name.starts_with(lock);
        let last = operations.iter().rposition(of_the_lock).expect("its lock is in the table");
        operations.insert(last + 1, attempt);
    }
    operations
}

/// Returns all operations. A structure under a lock has a spin lock here. The sleepers of other
/// locks lie on their threads' stacks, and the compiler's frame layout decides which of them share
/// a line.
pub(crate) fn all() -> Vec<Operation> {
    let mut operations = operations! {
        "machine::atomic load" => |threads| alike(threads, || AtomicU32::new(0), |word| {
            // Relaxed, here and below: only the cost matters.
            let _ = word.load(Ordering::Relaxed);
        }),
        "machine::atomic fetch_add" => |threads| alike(threads, || AtomicU32::new(0), |word| {
            word.fetch_add(1, Ordering::Relaxed);
        }),
        "machine::park wait on a changed word" => |threads| alike(threads, || AtomicU32::new(0), |word| {
            park::wait(word, 1, Deadline::NEVER);
        }),
        "machine::park wake, no sleeper" => |threads| alike(threads, || AtomicU32::new(0), |word| {
            park::wake_one(word);
        }),
    };
    operations.extend(spin_locks());
    operations.extend(operations! {
        "competitive::Mutex lock, unlock" => locks::<RawPolicyMutex<Adaptive>>,
        "competitive::Mutex try_lock, unlock" => tries::<RawPolicyMutex<Adaptive>>,
    });
    operations.extend(competitive::__policies!(mutexes));
    operations.extend(operations! {
        "competitive::RwLock read" => |threads| {
            alike(threads, || RwLock::<RawRwLock, ()>::new(()), |lock| drop(lock.read()))
        },
        "competitive::RwLock write" => |threads| {
            alike(threads, || (RwLock::<RawRwLock, ()>::new(()), stay(threads)), |(lock, stay)| {
                let guard = lock.write();
                rest(*stay);
                drop(guard);
                rest(*stay);
            })
        },
        "competitive::Condvar notify, no waiter" => |threads| {
            alike(threads, competitive::Condvar::new, |condvar| {
                condvar.notify_one();
            })
        },
        "competitive::Semaphore acquire, release" => |threads| {
            alike(threads, || (Semaphore::<RawPolicyMutex>::new(1), stay(threads)), |(semaphore, stay)| {
                let permit = semaphore.acquire();
                rest(*stay);
                drop(permit);
                rest(*stay);
            })
        },
        "competitive::EventCount prepare, cancel" => |threads| {
            alike(threads, EventCount::new, |events| events.cancel(events.prepare()))
        },
        "competitive::EventCount notify, no waiter" => |threads| {
            alike(threads, EventCount::new, |events| {
                events.notify_one();
            })
        },
        "competitive::Once call_once, done" => |threads| alike(threads, Once::new, |once| once.call_once(|| ())),
        "competitive::OnceLock get" => |threads| alike(threads, || {
            let lock = OnceLock::new();
            lock.set(7).expect("it is new");
            lock
        }, |lock| {
            let _ = lock.get();
        }),
    });
    for structures in [
        lockfree::__structures!(counter: structures [counters default()]),
        lockfree::__structures!(other_counter: structures [counters default()]),
        lockfree::__structures!(ring: structures [queues with_capacity(1_024)], u64),
        lockfree::__structures!(queue: structures [queues default()], u64, lock: TestAndSet),
        lockfree::__structures!(stack: structures [stacks default()], u64, lock: TestAndSet),
        operations! {
            // A record with some sixty such nodes scans.
            "lockfree::TreiberStack of 1 KiB, hazards push, pop" => |threads| {
                alike(threads, lockfree::stack::TreiberStack::<[u8; 1 << 10]>::default, |stack| {
                    stack.push([1; 1 << 10]);
                    let _ = stack.pop();
                })
            },
        },
        lockfree::__structures!(heap: structures [heaps default()], u64, lock: TestAndSet),
        lockfree::__structures!(other_heap: structures [heaps default()], u64),
        operations! {
            "LockedQueue<Barging> push, pop" => |threads| {
                queues(threads, lockfree::queue::LockedQueue::<u64, Barging>::default)
            },
            "LockedStack<Barging> push, pop" => |threads| {
                stacks(threads, lockfree::stack::LockedStack::<u64, Barging>::default)
            },
            "LockedArrayHeap<Barging> push, pop" => |threads| {
                heaps(threads, lockfree::heap::LockedArrayHeap::<u64, u64, Barging>::default)
            },
        },
    ] {
        operations.extend(structures);
    }
    operations.extend(strategies());
    operations.extend(operations! {
        "activations::spawn, join, 8 times" => forks,
        "activations::unpark, park, 8 times" => signals,
    });
    operations.extend(gang::__barriers!(barriers));
    operations
}
