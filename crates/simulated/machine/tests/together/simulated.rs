//! The simulated machine through the interface of `machine`: the accesses that it charges, the time
//! that passes, the thread that runs, and the calls that it refuses.
//!
//! `crates/simulator` tests the memory systems and the scheduler themselves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use stanchion_machine::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, fence};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::{self, Deadline};
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{self, Patient, Spin, WaitPolicy, wait_until};
use stanchion_machine::{Model, park, thread, topology};
use stanchion_machine_simulated as stanchion_machine;
use stanchion_simulator::{Failure, Run, Simulation, machines};

use Ordering::{Acquire, Relaxed, Release};

fn on<R: 'static>(
    processors: usize,
    body: impl FnOnce() -> R + 'static,
) -> Result<Run<R>, Failure> {
    Simulation::new(machines::modern(processors)).run(body)
}

fn result_on<R: 'static>(processors: usize, body: impl FnOnce() -> R + 'static) -> R {
    on(processors, body).unwrap().result
}

/// Runs `body`, which must panic, and returns the message.
fn panic_of<R>(body: impl FnOnce() -> R) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(body)) else { panic!("it did not panic") };
    let message = panic.downcast_ref::<String>().cloned();
    message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

fn nanos_of(body: impl FnOnce()) -> u64 {
    let start = clock::now();
    body();
    clock::now().nanos_since(start)
}

#[test]
fn join_brings_the_result_or_the_panic() {
    result_on(2, || {
        let sum = thread::spawn(|| 40 + 2);
        let fails =
            thread::Builder::new().name("fails".into()).spawn(|| panic!("as it should")).unwrap();
        assert_eq!(sum.join().unwrap(), 42);
        let panic = fails.join().unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"as it should"));
        let last = thread::spawn(|| ());
        thread::sleep(Duration::from_millis(1));
        assert!(last.is_finished());
    });
}

#[test]
fn a_run_ends_when_detached_threads_have() {
    static DONE: AtomicBool = AtomicBool::new(false);
    on(2, || {
        drop(thread::spawn(|| {
            thread::sleep(Duration::from_millis(5));
            DONE.store(true, Relaxed);
        }));
    })
    .unwrap();
    assert!(DONE.load(Relaxed));
}

#[test]
fn every_access_is_charged_once() {
    let accesses = |body: fn(&AtomicU32)| {
        let run = on(1, move || {
            let word = AtomicU32::new(0);
            body(&word);
        });
        let accesses = run.unwrap().statistics.accesses;
        (accesses.all, accesses.exchanges)
    };
    assert_eq!(accesses(|_| ()), (0, 0));
    assert_eq!(accesses(|word| assert_eq!(word.load(Acquire), 0)), (1, 0));
    assert_eq!(accesses(|word| word.store(1, Release)), (1, 0));
    assert_eq!(accesses(|word| assert_eq!(word.swap(1, Relaxed), 0)), (1, 1));
    assert_eq!(accesses(|word| assert_eq!(word.fetch_add(1, Relaxed), 0)), (1, 1));
    let exchange_in_vain = |word: &AtomicU32| {
        assert_eq!(word.compare_exchange(1, 2, Relaxed, Relaxed), Err(0));
    };
    assert_eq!(accesses(exchange_in_vain), (1, 1));
    let update = |word: &AtomicU32| {
        assert_eq!(word.fetch_update(Relaxed, Relaxed, |value| Some(value + 1)), Ok(0));
    };
    assert_eq!(accesses(update), (2, 1));
    assert_eq!(accesses(|word| assert_eq!(format!("{word:?}"), "0")), (0, 0));
    assert_eq!(accesses(|_| fence(Ordering::SeqCst)), (0, 0));
}

#[test]
fn cells_and_declared_data_are_charged() {
    let run = on(1, || {
        let cell = UnsafeCell::new(7_u64);
        // SAFETY: no other thread has the cell.
        assert_eq!(cell.with(|value| unsafe { *value }), 7);
        // SAFETY: as above.
        cell.with_mut(|value| unsafe { *value = 8 });
        UnsafeCell::new(()).with(|_| ());
        let table = [0_u64; 32];
        stanchion_machine::read(&table);
        stanchion_machine::write(&table[..2]);
        stanchion_machine::read(&());
    });
    assert_eq!(run.unwrap().statistics.accesses.all, 2 + 32 + 2);
}

#[test]
fn a_release_is_an_exchange_where_the_machine_has_no_other() {
    let exchanges = |machine| {
        let body = || {
            let word = AtomicU32::new(0);
            word.store(1, Relaxed);
            word.store(2, Release);
            word.store(3, Ordering::SeqCst);
        };
        Simulation::new(machine).run(body).unwrap().statistics.accesses.exchanges
    };
    assert_eq!(exchanges(machines::symmetry_a(1)), 2);
    assert_eq!(exchanges(machines::modern(1)), 0);
}

#[test]
fn words_are_plain_memory_outside_a_run() {
    static WORD: AtomicU32 = AtomicU32::new(3);
    WORD.store(4, Release);
    result_on(2, || {
        let other = thread::spawn(|| WORD.fetch_add(1, Relaxed));
        assert_eq!(other.join().unwrap(), 4);
    });
    assert_eq!(WORD.swap(9, Acquire), 5);
    let mut pointed = 1_u8;
    let pointer = AtomicPtr::new(&raw mut pointed);
    assert!(!pointer.load(Relaxed).is_null());
    fence(Ordering::SeqCst);
}

#[test]
fn calls_that_need_a_run_say_so() {
    let word = AtomicU32::new(0);
    let calls: [(&str, &dyn Fn()); 9] = [
        ("thread::spawn", &|| drop(thread::spawn(|| ()))),
        ("thread::yield_now", &thread::yield_now),
        ("thread::sleep", &|| thread::sleep(Duration::from_millis(1))),
        ("clock", &|| _ = clock::now()),
        ("park::wait", &|| _ = park::wait(&word, 0, Deadline::NEVER)),
        ("park::wake", &|| _ = park::wake_one(&word)),
        ("machine::work", &|| stanchion_machine::work(1)),
        ("topology", &|| _ = topology::usable()),
        ("wait", &|| _ = wait_until(&word, Relaxed, |value| value != 0, &mut Spin::start())),
    ];
    for (name, call) in calls {
        let message = panic_of(call);
        assert!(message.contains(name), "{name}: {message}");
        assert!(message.contains("outside a simulation"), "{name}: {message}");
        assert!(message.contains("machine::model"), "{name}: {message}");
    }
}

#[test]
fn a_thread_of_the_system_is_outside() {
    let message =
        result_on(2, || std::thread::spawn(|| panic_of(thread::yield_now)).join().unwrap());
    assert!(message.contains("thread::yield_now was used outside a simulation"), "{message}");
}

#[test]
fn an_instant_of_the_real_clock_is_refused() {
    let failure = on(1, || Deadline::at(Instant::now())).unwrap_err().to_string();
    assert!(failure.contains("std::time::Instant::now"), "{failure}");
    assert!(failure.contains("real machine"), "{failure}");
}

#[test]
fn a_wake_up_that_is_lost_is_a_deadlock_with_names() {
    let failure = on(2, || {
        let word = Arc::new(AtomicU32::new(0));
        let sleeper = {
            let word = word.clone();
            let sleep = move || _ = park::wait(&word, 0, Deadline::NEVER);
            thread::Builder::new().name("sleeper".into()).spawn(sleep).unwrap()
        };
        thread::sleep(Duration::from_millis(1));
        // No wake-up follows the store.
        word.store(1, Release);
        sleeper.join().unwrap();
    });
    let failure = failure.unwrap_err();
    assert!(matches!(failure, Failure::Deadlock { count: 2, .. }), "{failure}");
    let failure = failure.to_string();
    assert!(failure.contains("thread 1 'sleeper' is parked"), "{failure}");
    assert!(failure.contains("waits for the end of thread 1 'sleeper'"), "{failure}");
}

#[test]
fn a_futex_wakes_in_order() {
    result_on(4, || {
        let word = Arc::new(AtomicU32::new(0));
        let order = Arc::new(Mutex::new(Vec::new()));
        let sleepers: Vec<_> = (0..3)
            .map(|number| {
                let (word, order) = (word.clone(), order.clone());
                let sleeper = thread::spawn(move || {
                    assert_eq!(park::wait(&word, 0, Deadline::NEVER), park::Woken::Woken);
                    order.lock().unwrap().push(number);
                });
                thread::sleep(Duration::from_millis(1));
                sleeper
            })
            .collect();
        assert_eq!(park::wait(&word, 1, Deadline::NEVER), park::Woken::Changed);
        assert_eq!(park::wait(&word, 1, Deadline::PAST), park::Woken::Changed);
        assert_eq!(park::wait(&word, 0, Deadline::PAST), park::Woken::TimedOut);
        word.store(1, Release);
        assert!(park::wake_one(&word));
        thread::sleep(Duration::from_millis(1));
        assert_eq!(*order.lock().unwrap(), [0]);
        assert_eq!(park::wake_all(&word), 2);
        assert_eq!(park::wake_all(&word), 0);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    });
}

#[test]
fn deadlines_pass_in_virtual_time() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let limit = stanchion_simulator::Time::millis(4 * HOUR.as_millis() as u64);
    let run = Simulation::new(machines::modern(1)).time(limit);
    run.run(|| {
        let never = AtomicU32::new(0);
        let waited = |deadline: Deadline| {
            let seen = wait::wait_until_deadline(
                &never,
                Relaxed,
                |v| v != 0,
                &mut Spin::start(),
                deadline,
            );
            assert_eq!(seen, None);
        };
        let hour = HOUR.as_nanos() as u64;
        let late = |passed: u64| (hour..hour + 1_000).contains(&passed);
        assert!(late(nanos_of(|| waited(Deadline::after(HOUR)))));
        assert!(late(nanos_of(|| waited(Deadline::at(clock::moment_after(HOUR).unwrap())))));
        let deadline = Deadline::after(HOUR);
        assert_eq!(deadline.remaining(), Some(HOUR));
        assert!(!deadline.passed());
        let parked =
            nanos_of(|| assert_eq!(park::wait(&never, 0, deadline), park::Woken::TimedOut));
        assert!((hour..hour + 1_000_000).contains(&parked), "{parked}");
        assert!(deadline.passed());
        assert_eq!(clock::moment_after(Duration::MAX), None);
        assert_eq!(clock::source().to_string(), "virtual time");
    })
    .unwrap();
}

#[test]
fn waits_take_the_given_time() {
    result_on(1, || {
        let word = AtomicU32::new(0);
        let none = |value| value != 0;
        assert_eq!(nanos_of(|| wait::delay(12_345)), 12_345);
        assert_eq!(nanos_of(|| wait::delay(0)), 0);
        let spun = nanos_of(|| assert_eq!(wait::spin_for(&word, Relaxed, none, 5_000), None));
        assert!((5_000..5_100).contains(&spun), "{spun}");
        let mut left = 3;
        let retried = nanos_of(|| {
            let again = || {
                left -= 1;
                left > 0
            };
            assert_eq!(wait::retry_for(|| None::<()>, 100..1_000, again), None);
        });
        assert_eq!(retried, 100 + 200);
        assert_eq!(nanos_of(|| stanchion_machine::work(500)), 500);
        assert_eq!(nanos_of(|| stanchion_machine::burn(500)), 500);
        let slept = nanos_of(|| thread::sleep(Duration::from_micros(70)));
        assert!((70_000..90_000).contains(&slept), "{slept}");
    });
}

#[test]
fn a_waiter_that_spins_in_its_own_cache_makes_no_accesses() {
    let run = on(2, || {
        let word = Arc::new(AtomicU32::new(0));
        let waiter = {
            let word = word.clone();
            thread::spawn(move || {
                wait_until(&*word, Acquire, |value| value != 0, &mut Spin::start());
                clock::now()
            })
        };
        thread::sleep(Duration::from_millis(20));
        word.store(1, Release);
        let stored = clock::now();
        let seen = waiter.join().unwrap();
        assert!(seen.nanos_since(stored) < 2_000, "the waiter sees the store at once");
    });
    let accesses = run.unwrap().statistics.accesses.all;
    assert!(accesses < 20, "{accesses} accesses in 20 ms");
}

#[test]
fn patient_waiters_yield_to_the_thread_they_wait_for() {
    let waits = |patient: bool| {
        let run = on(1, move || {
            let word = Arc::new(AtomicU32::new(0));
            let setter = {
                let word = word.clone();
                thread::spawn(move || word.store(1, Release))
            };
            let done = |value| value != 0;
            if patient {
                wait_until(&*word, Acquire, done, &mut <Patient>::start());
            } else {
                wait_until(&*word, Acquire, done, &mut Spin::start());
            }
            setter.join().unwrap();
        });
        run.unwrap().statistics.elapsed
    };
    // A waiter that only spins lets the setter run when its time slice ends.
    let quantum = machines::modern(1).scheduling.quantum;
    assert!(waits(false) >= quantum);
    assert!(waits(true) < quantum);
}

#[test]
fn a_patient_policy_measures_virtual_time() {
    result_on(4, || {
        let word = AtomicU32::new(0);
        let mut policy = Patient::<100, 2>::start();
        let most = Duration::from_nanos(wait::calls(75));
        let deadline = Deadline::after(most);
        let done = |value| value != 0;
        assert_eq!(wait::wait_until_deadline(&word, Relaxed, done, &mut policy, deadline), None);
        assert!(!policy.leaves(), "75 calls are less than 100");
        let deadline = Deadline::after(most);
        assert_eq!(wait::wait_until_deadline(&word, Relaxed, done, &mut policy, deadline), None);
        assert!(policy.leaves());
    });
}

stanchion_machine::thread_local! {
    static MINE: Leaves = Leaves(core::cell::Cell::new(0));
}

stanchion_machine::global! {
    static SHARED: AtomicU32 = AtomicU32::new(10);
}

stanchion_machine::global! {
    /// A table that is larger than a thread's stack.
    static TABLE: [AtomicU32; 1 << 18] = [const { AtomicU32::new(5) }; 1 << 18];
}

/// The values of the threads that have ended, in the order of their ends.
static LEFT: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A thread's value, which its destructor adds to [`LEFT`].
struct Leaves(core::cell::Cell<u32>);

impl Drop for Leaves {
    fn drop(&mut self) {
        assert!(MINE.try_with(|_| ()).is_err(), "a dropped thread-local is out of reach");
        LEFT.lock().unwrap().push(self.0.get());
    }
}

#[test]
fn statics_belong_to_the_run_and_thread_locals_to_the_thread() {
    for _ in 0..2 {
        result_on(2, || {
            MINE.with(|mine| mine.0.set(1));
            let other = thread::spawn(|| {
                MINE.with(|mine| assert_eq!(mine.0.replace(2), 0));
                SHARED.fetch_add(1, Relaxed)
            });
            assert_eq!(other.join().unwrap(), 10);
            assert_eq!(SHARED.load(Relaxed), 11);
            assert_eq!(MINE.with(|mine| mine.0.get()), 1);
            assert_eq!(TABLE[TABLE.len() - 1].fetch_add(1, Relaxed), 5);
        });
        assert_eq!(std::mem::take(&mut *LEFT.lock().unwrap()), [2, 1]);
    }
    let message = panic_of(|| SHARED.load(Relaxed));
    assert!(message.contains("outside a simulation"), "{message}");
}

#[test]
fn presence_is_exact() {
    use stanchion_machine::presence::{self, Presence};
    let seen = |processors: usize, body: fn()| {
        result_on(processors, move || {
            let other = thread::spawn(body);
            let me = presence::register().unwrap();
            assert_eq!(presence::of(me.index()), Presence::Running);
            assert!(me.refused().is_none());
            stanchion_machine::work(50_000);
            let seen = (presence::of(1), presence::runs(1));
            other.join().unwrap();
            assert_eq!(presence::of(1), Presence::Unknown, "the thread has ended");
            seen
        })
    };
    assert_eq!(seen(2, || stanchion_machine::work(1_000_000)), (Presence::Running, Some(true)));
    assert_eq!(seen(1, || ()), (Presence::Preempted, Some(false)));
    assert_eq!(
        seen(2, || thread::sleep(Duration::from_millis(1))),
        (Presence::Blocked, Some(false))
    );
    assert_eq!(stanchion_machine::presence::status(), Ok(()));
}

#[test]
fn the_time_of_a_switch_is_the_moment_itself() {
    use stanchion_machine::presence::{Presence, of, since};
    const SLEEP: Duration = Duration::from_millis(4);
    // The first machine runs at the speed of the code's clock. The second is forty times slower.
    for machine in [machines::modern(2), machines::firefly()] {
        let body = || {
            // A lock of the standard library takes no virtual time.
            let read = Arc::new(Mutex::new(Vec::new()));
            let reads = read.clone();
            let sleeper = thread::spawn(move || {
                let record = || reads.lock().unwrap().push(clock::monotonic());
                record();
                stanchion_machine::work(1_000_000);
                record();
                thread::sleep(SLEEP);
                record();
                thread::sleep(SLEEP);
            });
            let seen = |after| {
                thread::sleep(after);
                (of(1), since(1).unwrap())
            };
            let last = || *read.lock().unwrap().last().unwrap();
            let (presence, slept) = seen(SLEEP / 2);
            assert_eq!((presence, slept), (Presence::Blocked, last()));
            let (presence, slept) = seen(SLEEP);
            assert_eq!((presence, slept), (Presence::Blocked, last()), "the thread sleeps again");
            assert_eq!(read.lock().unwrap()[1] + SLEEP.as_nanos() as u64, slept);
            sleeper.join().unwrap();
            assert_eq!((since(1), since(usize::MAX)), (None, None), "neither number has a thread");
        };
        Simulation::new(machine).run(body).unwrap();
    }
}

#[test]
fn a_preempted_thread_was_switched_when_the_other_thread_was() {
    use stanchion_machine::presence::{Presence, of, since};
    let machine = machines::modern(1);
    let switch = machine.scheduling.switch.as_nanos();
    let body = move || {
        let other = thread::spawn(move || {
            let began = clock::monotonic();
            assert_eq!((of(0), since(0)), (Presence::Preempted, Some(began - switch)));
            assert_eq!((of(1), since(1)), (Presence::Running, Some(began - switch)));
        });
        assert_eq!((of(1), since(1)), (Presence::Preempted, None), "the thread has not run yet");
        stanchion_machine::work(2_000_000);
        other.join().unwrap();
    };
    Simulation::new(machine).run(body).unwrap();
}

#[test]
fn a_pinned_thread_stays_and_its_children_with_it() {
    result_on(4, || {
        assert_eq!(topology::processors(), [0, 1, 2, 3]);
        assert_eq!((topology::online(), topology::usable(), topology::parallelism()), (4, 4, 4));
        assert_eq!(topology::quota(), None);
        let pinned = topology::pin(2).unwrap();
        assert_eq!((topology::processors(), topology::current()), (vec![2], Some(2)));
        let child = thread::spawn(|| (topology::processors(), topology::current()));
        assert_eq!(child.join().unwrap(), (vec![2], Some(2)));
        {
            let _again = topology::pin(3).unwrap();
            assert_eq!(topology::current(), Some(3));
        }
        assert_eq!(topology::current(), Some(2), "the earlier pin counts again");
        drop(pinned);
        assert_eq!(topology::processors().len(), 4);
        let error = topology::pin(4).unwrap_err().to_string();
        assert!(error.contains("processor 4 does not exist"), "{error}");
    });
}

#[test]
fn a_pin_may_be_kept_until_the_thread_ends() {
    use core::cell::RefCell;
    stanchion_machine::thread_local! {
        static KEPT: RefCell<Option<topology::Pinned>> = RefCell::new(None);
    }
    let run = on(2, || {
        let pinned = topology::pin(1).unwrap();
        KEPT.with(|kept| *kept.borrow_mut() = Some(pinned));
        assert_eq!(thread::spawn(topology::current).join().unwrap(), Some(1));
    });
    run.unwrap();
}

#[test]
fn threads_are_numbered_as_they_start() {
    result_on(2, || {
        assert_eq!(thread::index(), Some(0));
        for number in 1..5 {
            assert_eq!(thread::spawn(thread::index).join().unwrap(), Some(number));
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        Simulation::new(machines::modern(4))
            .seed(seed)
            .run(|| {
                let word = Arc::new(AtomicU32::new(0));
                let threads: Vec<_> = (0..6)
                    .map(|_| {
                        let word = word.clone();
                        thread::spawn(move || {
                            for _ in 0..50 {
                                wait::delay(stanchion_machine::hint::entropy() % 1_000);
                                word.fetch_add(1, Relaxed);
                                let boxed = Box::new(AtomicU32::new(1));
                                boxed.fetch_add(1, Relaxed);
                            }
                        })
                    })
                    .collect();
                for thread in threads {
                    thread.join().unwrap();
                }
            })
            .unwrap()
            .statistics
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_model_is_a_few_runs() {
    let explored =
        Model::new().preemptions(2).branches(9).choices(1).weak_failures(1).objects(1).check(
            || {
                let count = Arc::new(AtomicU32::new(0));
                let other = {
                    let count = count.clone();
                    thread::spawn(move || count.fetch_add(1, Relaxed))
                };
                count.fetch_add(1, Relaxed);
                other.join().unwrap();
                assert_eq!(count.load(Relaxed), 2);
                assert!(!stanchion_machine::choice());
            },
        );
    assert_eq!(explored.to_string(), "8 executions");
    let message = panic_of(|| {
        stanchion_machine::model(|| assert!(topology::online() < 4, "four are too many"))
    });
    assert!(message.contains("four are too many"), "{message}");
}
