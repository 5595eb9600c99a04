//! Tests whether threads are seen where they are, and what happens when the system refuses to tell.
//!
//! Switch records may be missing (a container's filter, a strict `perf_event_paranoid`). Then the
//! tests that need them print so and return. The tests of refusals run everywhere.

#![cfg(target_os = "linux")]

use stanchion_machine::presence::{self, Means, Presence, Refused, switches};
use stanchion_machine::thread;
use stanchion_machine::topology::{pin, processors};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

mod alone;
mod examined;
mod watch;
use alone::{Account, alone, become_nobody, in_a_fork, lock_no_memory, refuse_perf_events};

/// Returns whether records can be had. Prints the reason if not.
fn records() -> bool {
    match presence::status() {
        Ok(()) => true,
        Err(refused) => {
            eprintln!("without switch records: {refused}");
            false
        }
    }
}

/// Waits until `wanted` returns true. Everything that a test waits for happens within milliseconds;
/// a minute means never.
fn until(wanted: impl Fn() -> bool) {
    let start = Instant::now();
    while !wanted() {
        assert!(start.elapsed() < Duration::from_secs(60), "the expected state never came");
        std::thread::yield_now();
    }
}

/// A thread that carries out orders.
struct Watched {
    /// The thread's index, under which it is registered.
    index: usize,
    /// The sender of orders. The thread ends when it is dropped.
    orders: mpsc::Sender<Order>,
    /// While true, a thread with the order to spin goes on. The test writes it.
    spins: Arc<AtomicBool>,
    /// The handle that the test joins.
    thread: std::thread::JoinHandle<()>,
}

enum Order {
    SpinUntilToldNot,
    Unregister,
}

impl Watched {
    /// Starts a thread on processor `cpu`. It registers and waits for an order.
    fn on(cpu: usize) -> Self {
        let (orders, receiver) = mpsc::channel();
        let (sender, registered) = mpsc::channel();
        let spins = Arc::new(AtomicBool::new(false));
        let told = spins.clone();
        let thread = std::thread::spawn(move || {
            let _pinned = pin(cpu).unwrap();
            let mut me = Some(presence::register().unwrap());
            sender.send(me.as_ref().unwrap().index()).unwrap();
            for order in receiver {
                match order {
                    Order::SpinUntilToldNot => while told.load(SeqCst) {},
                    Order::Unregister => drop(me.take()),
                }
            }
        });
        Self { index: registered.recv().unwrap(), orders, spins, thread }
    }

    fn spin(&self) {
        self.spins.store(true, SeqCst);
        self.orders.send(Order::SpinUntilToldNot).unwrap();
    }

    fn end(self) -> usize {
        self.spins.store(false, SeqCst);
        drop(self.orders);
        self.thread.join().unwrap();
        self.index
    }
}

#[test]
fn on_one_processor_the_other_is_always_away_and_the_reason_is_right() {
    let _account = Account::shared();
    if !records() {
        return;
    }
    let cpu = processors()[0];
    let _pinned = pin(cpu).unwrap();
    let other = Watched::on(cpu);
    let mine = presence::register().unwrap();
    until(|| {
        assert_eq!(presence::of(mine.index()), Presence::Running, "the calling thread runs");
        // Both threads share a processor: while this one looks, the other cannot be on it.
        assert_ne!(presence::of(other.index), Presence::Running);
        presence::of(other.index) == Presence::Blocked
    });
    other.spin();
    until(|| {
        assert_ne!(presence::of(other.index), Presence::Running);
        presence::of(other.index) == Presence::Preempted
    });
    for _ in 0..20 {
        std::thread::sleep(Duration::from_micros(200));
        // It spins all the time, so it has been preempted when it is off its processor.
        assert_eq!(presence::of(other.index), Presence::Preempted);
        assert_eq!(presence::runs(other.index), Some(false));
    }
    let index = other.end();
    // This takes a while: a thread of another test may have been given the number.
    until(|| presence::of(index) == Presence::Unknown);
}

#[test]
fn on_another_processor_it_is_seen_to_run() {
    let _account = Account::shared();
    let cpus = processors();
    if !records() || cpus.len() < 2 {
        return;
    }
    let _pinned = pin(cpus[0]).unwrap();
    let other = Watched::on(cpus[1]);
    other.spin();
    until(|| presence::of(other.index) == Presence::Running);
    until(|| presence::runs(other.index) == Some(true));
    other.spins.store(false, SeqCst);
    until(|| presence::of(other.index) == Presence::Blocked);
    other.end();
}

#[test]
fn while_the_count_is_odd_and_unchanged_the_thread_does_nothing() {
    let _account = Account::shared();
    const SWITCHES: u64 = 40;
    let Ok(_) = presence::status() else { return };
    let cpus = processors();
    let (holder_cpu, my_cpu) = (cpus[0], cpus[cpus.len() - 1]);
    let _pinned = pin(my_cpu).unwrap();
    let stop = AtomicBool::new(false);
    let heart = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (sender, ring) = mpsc::channel();
        let (stop, heart) = (&stop, &heart);
        scope.spawn(move || {
            let _pinned = pin(holder_cpu).unwrap();
            sender.send(switches::Ring::of_this_thread().unwrap()).unwrap();
            while !stop.load(SeqCst) {
                heart.fetch_add(1, SeqCst);
            }
        });
        // Takes turns with the holder, so that there are switches to see.
        scope.spawn(move || {
            let _pinned = pin(holder_cpu).unwrap();
            while !stop.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        let ring = ring.recv().unwrap();
        let (mut off, mut on, mut beats) = (0_u64, 0_u64, 0_u64);
        let start = Instant::now();
        // A thread that is on a processor makes progress at some time. An interrupt or the
        // hypervisor may have taken it whenever it is looked at.
        let progress_is_seen = holder_cpu != my_cpu;
        while ring.count() < SWITCHES || off == 0 || (progress_is_seen && beats == 0) {
            let in_time = start.elapsed() < Duration::from_secs(60);
            assert!(in_time, "{} switches, {beats} of {on} saw progress", ring.count());
            let before = ring.count();
            let first = heart.load(SeqCst);
            for _ in 0..100 {
                std::hint::spin_loop();
            }
            let last = heart.load(SeqCst);
            if ring.count() != before {
                continue;
            }
            if before % 2 == 1 {
                off += 1;
                assert_eq!(first, last, "it ran while the records say it was off its processor");
            } else {
                on += 1;
                beats += u64::from(first != last);
            }
        }
        stop.store(true, SeqCst);
        eprintln!("{off} looks off the processor, {on} looks on it, of which {beats} saw progress");
    });
}

#[test]
fn records_tell_what_happened_in_order() {
    let _account = Account::shared();
    let Ok(ring) = switches::Ring::of_this_thread() else { return };
    let before = ring.count();
    assert_eq!(before % 2, 0);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_micros(300));
    }
    let after = ring.count();
    let seen: Vec<_> = (before..after).map(|number| ring.switch(number).unwrap()).collect();
    let blocked = seen.iter().filter(|switch| **switch == switches::Switch::Blocked).count();
    assert!(blocked >= 3, "{seen:?}");
    assert!(seen.chunks(2).all(|pair| pair[1] == switches::Switch::In), "{seen:?}");
    assert_eq!(ring.switch(u64::MAX), None);
}

#[test]
fn nobody_is_unknown() {
    let _account = Account::shared();
    for index in [thread::INDICES - 1, thread::INDICES, usize::MAX] {
        assert_eq!(presence::of(index), Presence::Unknown);
        assert_eq!(presence::runs(index), None);
    }
}

#[test]
fn registrations_nest_and_the_last_to_go_ends_them() {
    let _account = Account::shared();
    std::thread::spawn(|| {
        let outer = presence::register().unwrap();
        let inner = presence::register().unwrap();
        let index = outer.index();
        assert_eq!(inner.index(), index);
        drop(outer);
        assert_eq!(presence::runs(index), Some(true));
        drop(inner);
        assert_eq!(presence::runs(index), None);
        let again = presence::register().unwrap();
        assert_eq!(presence::runs(again.index()), Some(true));
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_that_ends_is_gone_even_if_it_forgot_to_say_so() {
    let _account = Account::shared();
    let other = Watched::on(processors()[0]);
    other.orders.send(Order::Unregister).unwrap();
    until(|| presence::runs(other.index).is_none());
    other.end();

    let index = std::thread::spawn(|| {
        let me = presence::register().unwrap();
        let index = me.index();
        std::mem::forget(me);
        index
    })
    .join()
    .unwrap();
    // A thread of another test may have the number by now and be registered under it, but not for
    // ever.
    until(|| presence::of(index) == Presence::Unknown);
}

#[test]
fn a_registration_may_outlive_its_threads_number() {
    let _account = Account::shared();
    std::thread_local! {
        static HELD: RefCell<Option<presence::Registration>> = const { RefCell::new(None) };
    }
    for number_first in [true, false] {
        for _ in 0..50 {
            std::thread::spawn(move || {
                // Whichever thread-local is used first: in one of the two orders its destructor
                // runs after the number's.
                if number_first {
                    assert!(thread::index().is_some());
                }
                HELD.with(|held| {
                    *held.borrow_mut() = Some(presence::register().unwrap());
                });
            })
            .join()
            .unwrap();
        }
    }
}

#[test]
fn readers_never_fault_while_threads_come_and_go() {
    let _account = Account::shared();
    const THREADS: usize = 60;
    const AT_ONCE: usize = 4;
    let done = AtomicBool::new(false);
    let asked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    for index in 0..64 {
                        std::hint::black_box(presence::of(index));
                    }
                    asked.fetch_add(64, SeqCst);
                    std::thread::yield_now();
                }
            });
        }
        for _ in 0..THREADS / AT_ONCE {
            let threads: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..5 {
                            let me = presence::register().unwrap();
                            assert_ne!(presence::runs(me.index()), Some(false));
                            std::thread::yield_now();
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
        }
        done.store(true, SeqCst);
    });
    assert!(asked.into_inner() > 0);
}

/// Checks what a thread sees of itself and of a sleeping thread when there are no records.
fn the_cpu_clock_stands_in(expected: impl Fn(&Refused) -> bool) {
    let refused = presence::status().unwrap_err();
    assert!(expected(&refused), "{refused:?}");
    let me = presence::register().unwrap();
    assert_eq!((me.means(), me.refused()), (Means::CpuClock, Some(&refused)));
    assert_eq!(presence::of(me.index()), Presence::Unknown);
    assert_eq!(presence::runs(me.index()), Some(true));

    let other = Watched::on(processors()[0]);
    until(|| presence::runs(other.index) == Some(false));
    assert_eq!(presence::of(other.index), Presence::Unknown);
    let index = other.end();
    assert_eq!(presence::runs(index), None);
    assert_eq!(switches::Ring::of_this_thread().unwrap_err(), refused);
}

#[test]
fn a_filtered_call_is_named_and_the_cpu_clock_stands_in() {
    let _account = Account::shared();
    alone("a_filtered_call_is_named_and_the_cpu_clock_stands_in", || {
        refuse_perf_events(libc::EPERM);
        the_cpu_clock_stands_in(|refused| {
            matches!(refused, Refused::Filtered { errno: libc::EPERM } | Refused::Paranoid { .. })
        });
    });
}

#[test]
fn a_kernel_without_perf_events_is_named_and_the_cpu_clock_stands_in() {
    let _account = Account::shared();
    alone("a_kernel_without_perf_events_is_named_and_the_cpu_clock_stands_in", || {
        refuse_perf_events(libc::ENOSYS);
        the_cpu_clock_stands_in(|refused| {
            *refused == Refused::NoPerfEvents { errno: libc::ENOSYS }
        });
    });
}

#[test]
fn no_privilege_is_needed_while_the_policy_allows_it() {
    let _account = Account::shared();
    alone("no_privilege_is_needed_while_the_policy_allows_it", || {
        become_nobody();
        let paranoid: Option<i32> = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
            .ok()
            .and_then(|level| level.trim().parse().ok());
        match (presence::status(), paranoid) {
            (Err(Refused::Paranoid { level }), Some(policy)) => assert_eq!(level, policy),
            (Ok(()), Some(policy)) => assert!(policy <= 2),
            (refused, None | Some(..=2)) => {
                eprintln!("{refused:?}");
                assert!(matches!(
                    refused,
                    Err(Refused::Filtered { .. } | Refused::NoPerfEvents { .. })
                ));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn without_locked_memory_the_refusal_passes_with_its_cause() {
    let _account = Account::to_ourselves();
    alone("without_locked_memory_the_refusal_passes_with_its_cause", || {
        become_nobody();
        lock_no_memory();
        if !records() {
            return;
        }
        let mut rings = Vec::new();
        let refused = loop {
            match switches::Ring::of_this_thread() {
                Ok(ring) => rings.push(ring),
                Err(refused) => break refused,
            }
            assert!(rings.len() < 100_000, "there is no limit");
        };
        if matches!(refused, Refused::Descriptors { .. } | Refused::Other { .. }) {
            return eprintln!("this system runs out of something else first: {refused}");
        }
        assert!(matches!(refused, Refused::MemoryLimit { memlock_kb: 0, .. }), "{refused:?}");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let me = presence::register().unwrap();
                    assert_eq!(me.means(), Means::CpuClock);
                    assert!(matches!(me.refused(), Some(Refused::MemoryLimit { .. })));
                    assert_eq!(presence::runs(me.index()), Some(true));
                });
            }
        });
        drop(rings);
        let me = presence::register().unwrap();
        assert_eq!(me.means(), Means::Records, "{:?}", me.refused());
    });
}

#[test]
fn four_times_as_many_threads_as_there_is_memory_for() {
    let _account = Account::to_ourselves();
    alone("four_times_as_many_threads_as_there_is_memory_for", || {
        become_nobody();
        lock_no_memory();
        if !records() {
            return;
        }
        // Makes all but a few of the rings that there is memory for, so that the limit is near on a
        // machine of any size.
        const LEFT: usize = 30;
        let mut rings = Vec::new();
        while let Ok(ring) = switches::Ring::of_this_thread() {
            rings.push(ring);
            if rings.len() == 100_000 {
                return eprintln!("this system has no limit");
            }
        }
        rings.truncate(rings.len().saturating_sub(LEFT));
        for _ in 0..2 {
            let seen = by_means(4 * LEFT);
            // A registration may coincide with the self-check of another, and the ring of that
            // counts too. All other threads get what there is.
            assert!(seen.0 > 0 && seen.0 <= LEFT, "{seen:?}");
            assert_eq!(seen.0 + seen.1, 4 * LEFT);
        }
        drop(rings);
        assert_eq!(by_means(LEFT), (LEFT, 0), "the rings of ended threads have come back");
    });
}

/// Starts `threads` threads, which all register at the same time. Returns how many have records and
/// how many the CPU clock.
fn by_means(threads: usize) -> (usize, usize) {
    let all_there = Barrier::new(threads);
    let (records, clocks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let me = presence::register().unwrap();
                match me.means() {
                    Means::Records => records.fetch_add(1, SeqCst),
                    Means::CpuClock => clocks.fetch_add(1, SeqCst),
                    other => panic!("unknown means: {other:?}"),
                };
                assert_eq!(presence::runs(me.index()), Some(true), "the calling thread runs");
                all_there.wait();
            });
        }
    });
    (records.into_inner(), clocks.into_inner())
}

#[test]
fn a_forked_child_knows_nobody_and_may_start_afresh() {
    let _account = Account::shared();
    alone("a_forked_child_knows_nobody_and_may_start_afresh", || {
        let other = Watched::on(processors()[0]);
        let me = presence::register().unwrap();
        let mine = switches::Ring::of_this_thread();
        in_a_fork(|| {
            for index in [me.index(), other.index] {
                assert_eq!(presence::of(index), Presence::Unknown);
                assert_eq!(presence::runs(index), None);
            }
            if let Ok(ring) = &mine {
                assert_eq!((ring.count(), ring.switch(0)), (0, None));
                assert_eq!(ring.presence(), Presence::Unknown);
            }
            let again = presence::register().unwrap();
            assert_eq!(again.index(), me.index());
            assert_eq!(presence::runs(again.index()), Some(true));
            in_a_fork(|| assert_eq!(presence::of(again.index()), Presence::Unknown));
        });
        assert_eq!(presence::runs(me.index()), Some(true), "the parent has lost nothing");
        other.end();
    });
}

#[test]
fn a_registration_inherited_by_a_child_does_not_end_the_childs_own() {
    let _account = Account::shared();
    alone("a_registration_inherited_by_a_child_does_not_end_the_childs_own", || {
        let inherited = std::cell::Cell::new(Some(presence::register().unwrap()));
        let ring = std::cell::Cell::new(switches::Ring::of_this_thread().ok());
        in_a_fork(|| {
            let own = presence::register().unwrap();
            drop(inherited.take());
            drop(ring.take());
            assert_eq!(presence::runs(own.index()), Some(true));
        });
        let kept = inherited.take().unwrap();
        assert_eq!(presence::runs(kept.index()), Some(true));
    });
}
