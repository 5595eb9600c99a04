//! Things that a program must not be able to do to the simulator: to be inside it twice, to keep
//! its memory, to outlast its panics.

use stanchion_simulator::inside::{self, Global, Local, Parked};
use stanchion_simulator::{Arena, Failure, Machine, Simulation, Time, machines};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[global_allocator]
static ARENA: Arena = Arena;

/// Returns whether the value is in the memory of the run.
fn is_inside<T>(value: &T) -> bool {
    inside::identity(core::ptr::from_ref(value).cast()) >> 63 == 0
}

#[test]
fn the_body_of_a_refused_thread_is_dropped_by_the_program() {
    struct Last(Rc<Cell<u32>>);
    impl Drop for Last {
        fn drop(&mut self) {
            // The simulator allocates elsewhere.
            let mine = is_inside(&*Box::new(0_u64));
            inside::sleep(1_000);
            self.0.set(self.0.get() + u32::from(mine));
        }
    }
    let run = Simulation::new(machines::modern(2)).threads(1).run(|| {
        let dropped = Rc::new(Cell::new(0));
        for pinned in [None, Some(2)] {
            let last = Last(Rc::clone(&dropped));
            let body = Box::new(move || drop(last));
            let refused = catch_unwind(AssertUnwindSafe(|| inside::spawn(None, pinned, body)));
            assert!(refused.is_err());
        }
        dropped.get()
    });
    assert_eq!(run.unwrap().result, 2);
}

#[test]
fn a_panic_hook_that_the_simulator_calls_is_outside() {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    std::thread_local! {
        static HOOKED: Cell<bool> = const { Cell::new(false) };
    }
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if HOOKED.get() {
            SEEN.fetch_add(if inside::is_running() { 10 } else { 1 }, Relaxed);
        } else {
            before(info);
        }
    }));
    let run = Simulation::new(machines::modern(2)).run(|| {
        HOOKED.set(true);
        let refused = catch_unwind(|| inside::pin(Some(2)));
        let program = catch_unwind(|| panic!("of the program"));
        HOOKED.set(false);
        (refused.is_err(), program.is_err(), inside::is_running())
    });
    assert_eq!(run.unwrap().result, (true, true, true));
    assert_eq!(SEEN.load(Relaxed), 11);
}

#[test]
fn statistics_that_are_kept_do_not_keep_the_memory_of_their_runs() {
    let kept: Vec<_> = (0..5_000)
        .map(|_| {
            let run = Simulation::new(machines::modern(1)).run(|| {
                inside::spawn(Some("named".to_owned()), None, Box::new(|| ()));
            });
            run.unwrap().statistics
        })
        .collect();
    assert!(kept.iter().all(|statistics| statistics.threads[1].name.as_deref() == Some("named")));
}

#[test]
fn a_run_that_has_ended_waits_for_no_other_application() {
    let run = |limit: Time| {
        let mut machine = machines::modern(16);
        machine.scheduling.applications = 100;
        let body = || inside::work(3 * 10_000_000);
        Simulation::new(machine).time(limit).run(body).map(|run| run.statistics)
    };
    let free = run(Time::millis(1_000_000)).unwrap();
    assert!(free.threads[0].preemptions > 0);
    assert_eq!(run(free.elapsed + Time::nanos(1)).unwrap(), free);
    assert!(matches!(run(free.elapsed), Err(Failure::Time { .. })));
}

#[test]
fn a_static_of_the_run_that_panics_when_it_is_dropped_fails_the_run() {
    struct Fails;
    impl Drop for Fails {
        fn drop(&mut self) {
            panic!("a static cannot go");
        }
    }
    struct Counts;
    impl Drop for Counts {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
    static DROPPED: AtomicU32 = AtomicU32::new(0);
    // SAFETY: no reference is kept.
    static FAILS: Global<Fails> = unsafe { Global::new(|| Fails) };
    // SAFETY: no reference is kept.
    static COUNTS: Global<Counts> = unsafe { Global::new(|| Counts) };
    let run = Simulation::new(machines::modern(1)).run(|| {
        let (_, _) = (&*FAILS, &*COUNTS);
    });
    let failure = run.unwrap_err();
    assert!(matches!(failure, Failure::Panicked { .. }), "{failure}");
    assert!(failure.to_string().contains("a static cannot go"), "{failure}");
    assert_eq!(DROPPED.load(Relaxed), 1);
}

/// For any ratio of the code's clock to the machine's, no call comes back before its time.
#[test]
fn no_deadline_passes_early_on_the_clock_of_the_code() {
    for scale in [0.1, 0.3, 0.7, 1.0, 3.3, 40.0] {
        let machine = Machine { scale, ..machines::modern(1) };
        let run = Simulation::new(machine).run(|| {
            let word = AtomicU32::new(0);
            let address = core::ptr::from_ref(&word).cast();
            (1..1_000).all(|nanos| {
                let until = inside::now() + nanos;
                let parked = inside::park(address, || false, until);
                let (woke, passed) = (inside::now(), inside::watch(address, nanos));
                parked == Parked::TimedOut && woke >= until && passed <= inside::now() - woke
            })
        });
        assert!(run.unwrap().result, "{scale}");
    }
}

#[test]
fn a_value_that_panicked_when_it_was_made_can_be_made_again() {
    static TRIES: AtomicU32 = AtomicU32::new(0);
    static VALUE: Local<u32> = Local::new(|| match TRIES.fetch_add(1, Relaxed) {
        0 => panic!("not yet"),
        tries => tries,
    });
    let run = Simulation::new(machines::modern(1)).run(|| {
        let first = catch_unwind(|| VALUE.with(|value| *value));
        (first.is_err(), VALUE.with(|value| *value))
    });
    assert_eq!(run.unwrap().result, (true, 1));
}
