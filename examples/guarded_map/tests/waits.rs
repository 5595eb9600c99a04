//! The patches of `parking_lot_core`: each wait is counted once, for its lock.
#![cfg(target_os = "linux")]

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use stanchion_order::{Step, WaitClass, WaitTotal, report, switch_on};

/// The waits of one test.
const WAITS: u64 = 5;

/// The folder of a thread in `/proc`, which the thread itself writes.
type Folder = OnceLock<std::path::PathBuf>;

/// Says where the calling thread's state can be read.
fn say(folder: &Folder) {
    let own = std::fs::read_link("/proc/thread-self").expect("a thread has a folder");
    folder.set(std::path::Path::new("/proc").join(own)).expect("it is said once");
}

/// Returns when the thread sleeps: it has said where it is just before its wait.
fn until_asleep(folder: &Folder) {
    loop {
        if let Some(folder) = folder.get() {
            let stat = std::fs::read_to_string(folder.join("stat")).expect("the thread waits");
            let (_, state) = stat.rsplit_once(") ").expect("the name is in parentheses");
            if state.starts_with('S') {
                return;
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the waits with a lock that was created at this line.
fn waits_with(line: u32) -> Vec<WaitTotal> {
    let is_its = |wait: &WaitTotal| {
        wait.lock.is_some_and(|lock| lock.created && lock.place.line() == line)
    };
    report().waits.into_iter().filter(is_its).collect()
}

/// The tests of one version of `parking_lot_core` under one of parking_lot.
macro_rules! tests {
    ($version:ident, $core:ident, $parking_lot:ident) => {
        mod $version {
            use super::*;
            use $parking_lot::{Condvar, Mutex, RwLock};

            /// Has another thread wait while `held` holds, as often as there are waits.
            fn contend<G>(hold: impl Fn() -> G, wait: impl Fn() + Sync) {
                for _ in 0..WAITS {
                    let folder = Folder::new();
                    thread::scope(|scope| {
                        let held = hold();
                        scope.spawn(|| {
                            say(&folder);
                            wait();
                        });
                        until_asleep(&folder);
                        drop(held);
                    });
                }
            }

            #[test]
            fn waits_for_locks_are_counted_for_their_locks() {
                switch_on();
                let (mutex, mutex_line) = (Mutex::new(()), line!());
                contend(|| mutex.lock(), || drop(mutex.lock()));
                let (lock, lock_line) = (RwLock::new(()), line!());
                contend(|| lock.write(), || drop(lock.read()));
                // A writer that waits for readers waits at a second address.
                contend(|| lock.read(), || drop(lock.write()));
                let until = || Instant::now() + Duration::from_secs(600);
                contend(|| mutex.lock(), || drop(mutex.try_lock_until(until())));
                // The places of a macro are all that of its call.
                assert_eq!(mutex_line, lock_line);
                let mut waits = waits_with(mutex_line);
                waits.retain(|wait| wait.class == WaitClass::Lock);
                waits.sort_by_key(|wait| wait.lock.map(|lock| lock.number));
                let counts: Vec<u64> = waits.iter().map(|wait| wait.count).collect();
                assert_eq!(counts, [2 * WAITS, 2 * WAITS], "{waits:?}");
                assert_eq!(waits[0].address, &raw const mutex as usize + 16);
                for wait in waits {
                    let frame = wait.path.first_outside().expect("the test is outside");
                    assert!(frame.function.contains("waits_for_locks"), "{frame}");
                    assert!(wait.longest <= wait.total && !wait.longest.is_zero());
                }
            }

            #[test]
            fn a_condition_releases_its_mutex_and_takes_it_again() {
                switch_on();
                let losses = report().losses;
                let (ready, log, changed) = (Mutex::new(false), Mutex::new(()), Condvar::new());
                let place = line!();
                let folder = Folder::new();
                thread::scope(|scope| {
                    scope.spawn(|| {
                        let mut guard = ready.lock();
                        let _log = log.lock();
                        say(&folder);
                        while !*guard {
                            changed.wait(&mut guard);
                        }
                    });
                    until_asleep(&folder);
                    // This thread could block for `log`, and the other one for `ready`.
                    let mut guard = ready.lock();
                    assert!(log.try_lock().is_none());
                    *guard = true;
                    changed.notify_one();
                });
                let in_own_order = || drop((ready.lock(), log.lock()));
                thread::scope(|scope| scope.spawn(in_own_order).join()).expect("no panic");
                let is_of_the_wait = |step: &Step| {
                    let mut frames = step.path.frames().iter();
                    step.taken_place.line() == place
                        && frames.any(|frame| frame.function.contains("Condvar"))
                };
                let report = report();
                let mut cycles = report.cycles.iter();
                assert!(cycles.any(|cycle| cycle.steps.iter().any(is_of_the_wait)), "{report}");
                let report = stanchion_order::report();
                assert_eq!(report.losses, losses);
                let mut waits = waits_with(place);
                waits.retain(|wait| wait.class == WaitClass::Condition);
                let [wait] = &waits[..] else { panic!("{waits:?}") };
                assert_eq!((wait.count, wait.address), (1, &raw const changed as usize));
            }

            #[test]
            fn a_wait_for_another_word_is_counted_once_it_has_slept() {
                switch_on();
                let word = 0_u64;
                let key = &raw const word as usize;
                let park = |validate: bool| {
                    // SAFETY: the address is that of a local variable, of no lock.
                    unsafe {
                        $core::park(
                            key,
                            || validate,
                            || (),
                            |_, _| (),
                            $core::DEFAULT_PARK_TOKEN,
                            None,
                        )
                    }
                };
                let total = || report().waits.into_iter().find(|wait| wait.address == key);
                assert_eq!(park(false), $core::ParkResult::Invalid);
                assert!(total().is_none());
                thread::scope(|scope| {
                    scope.spawn(|| park(true));
                    let unpark = || {
                        let token = $core::DEFAULT_UNPARK_TOKEN;
                        // SAFETY: as above.
                        unsafe { $core::unpark_one(key, |_| token) }.unparked_threads
                    };
                    while unpark() == 0 {
                        thread::yield_now();
                    }
                });
                let total = total().expect("it has slept");
                assert_eq!((total.class, total.count), (WaitClass::Other, 1));
            }
        }
    };
}

tests!(version_09, parking_lot_core_09, parking_lot_012);
tests!(version_010, parking_lot_core_010, parking_lot_013);
