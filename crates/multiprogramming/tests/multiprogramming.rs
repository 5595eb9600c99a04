//! Tests of the pseudo-scheduler on real threads. Only the account's lower bounds are checked,
//! because they hold however slow the machine is: no slice is shorter than a quantum, and no stop
//! is shorter than the others' quanta.
#![cfg(all(target_os = "linux", not(miri)))]

use core::time::Duration;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use stanchion_alone::in_a_fork;
use stanchion_machine::preemption::{self, Means};
use stanchion_multiprogramming::{Account, Member, Multiprogramming, Refused};

const QUANTUM: Duration = Duration::from_millis(2);

fn scheduler(level: u32) -> Multiprogramming {
    Multiprogramming::level(level).quantum(QUANTUM).start().unwrap()
}

/// Runs `body` as a member, on a thread of its own.
fn as_member<R: Send>(machine: &Multiprogramming, body: impl FnOnce(&Member) -> R + Send) -> R {
    thread::scope(|scope| {
        let thread = scope.spawn(|| body(&machine.join().unwrap()));
        thread.join().unwrap()
    })
}

fn until_stopped(member: &Member, times: u64) -> Account {
    while member.account().stops < times {
        spin_loop();
    }
    member.account()
}

#[test]
fn each_slice_and_each_stop_is_whole() {
    for level in [2, 3] {
        let machine = scheduler(level);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let account = until_stopped(&machine.join().unwrap(), 4);
                    let stops = u32::try_from(account.stops).unwrap();
                    assert!(account.stopped >= QUANTUM * (level - 1) * stops, "{account:?}");
                    // The first slice is a part of one.
                    assert!(account.granted >= QUANTUM * (stops - 1), "{account:?}");
                    assert_eq!((account.graces, account.breaches), (0, 0));
                });
            }
        });
    }
}

#[test]
fn a_stopped_thread_stands_still() {
    let (stops, gaps) = as_member(&scheduler(3), |member| {
        let (mut last, mut gaps) = (Instant::now(), 0);
        loop {
            // The stops are read before the clock: the thread has stood through each stop that is
            // counted here by then.
            let stops = member.account().stops;
            let now = Instant::now();
            if now - last >= QUANTUM * 2 {
                gaps += 1;
            }
            last = now;
            if stops >= 4 {
                return (stops, gaps);
            }
        }
    });
    assert!(gaps >= stops, "{stops} stops, {gaps} gaps");
}

#[test]
fn a_dedicated_machine_stops_nobody() {
    let machine = scheduler(1);
    assert_eq!(machine.applications(), 1);
    let account = as_member(&machine, |member| {
        let start = Instant::now();
        while start.elapsed() < QUANTUM * 4 {
            spin_loop();
        }
        member.account()
    });
    assert_eq!((account.stops, account.stopped), (0, Duration::ZERO));
    assert!(account.granted >= QUANTUM * 4);
}

/// Without its release the stop would last for 12 seconds.
#[test]
fn the_end_of_the_scheduler_lets_a_stopped_thread_go() {
    let machine = Multiprogramming::level(64).quantum(Duration::from_millis(200)).start().unwrap();
    let (turns, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (machine, theirs) = (Arc::new(machine), (Arc::clone(&turns), Arc::clone(&done)));
    let member = thread::spawn({
        let machine = Arc::clone(&machine);
        move || {
            let member = machine.join().unwrap();
            drop(machine);
            while !theirs.1.load(Relaxed) {
                theirs.0.fetch_add(1, Relaxed);
            }
            member.account()
        }
    });
    let mut seen = (0, 0);
    while seen.1 < 5 {
        thread::sleep(Duration::from_millis(50));
        let now = turns.load(Relaxed);
        seen = if now > 0 && now == seen.0 { (now, seen.1 + 1) } else { (now, 0) };
    }
    drop(Arc::into_inner(machine).expect("the member has dropped its reference"));
    done.store(true, Relaxed);
    let account = member.join().unwrap();
    assert!(account.stopped < Duration::from_millis(200 * 63), "{account:?}");
}

#[test]
fn a_thread_that_asks_for_ever_stays_once_a_slice() {
    let machine = scheduler(2);
    let account = as_member(&machine, |member| {
        assert_eq!(preemption::means(), Means::Scheduler);
        preemption::keep();
        let account = until_stopped(member, 3);
        preemption::thank();
        account
    });
    // The last slice may be in its grace already.
    assert!((account.stops..=account.stops + 1).contains(&account.graces), "{account:?}");
    assert_eq!(account.breaches, account.stops, "{account:?}");
}

#[test]
fn a_thread_that_was_lent_time_gives_way_when_it_thanks() {
    let machine = Multiprogramming::level(2).quantum(QUANTUM).grace(QUANTUM).start().unwrap();
    let (account, ways) = as_member(&machine, |member| {
        let mut ways = 0;
        while ways < 3 {
            preemption::keep();
            preemption::keep();
            for _ in 0..1_000 {
                spin_loop();
            }
            assert!(!preemption::thank(), "there is another request");
            let before = member.account().stops;
            if preemption::thank() {
                ways += 1;
                assert!(member.account().stops > before);
            }
        }
        (member.account(), ways)
    });
    assert!(account.graces >= ways, "{account:?}");
    assert!(account.stopped >= QUANTUM * ways as u32, "{account:?}");
}

#[test]
fn without_a_grace_requests_are_not_heeded() {
    let machine =
        Multiprogramming::level(2).quantum(QUANTUM).grace(Duration::ZERO).start().unwrap();
    let account = as_member(&machine, |member| {
        preemption::keep();
        until_stopped(member, 2)
    });
    assert_eq!((account.graces, account.breaches), (0, account.stops));
}

#[test]
fn giving_way_keeps_errno() {
    as_member(&scheduler(2), |member| {
        loop {
            preemption::keep();
            let before = member.account().graces;
            while member.account().graces == before {
                spin_loop();
            }
            std::fs::File::open("/no such file").unwrap_err();
            let gave_way = preemption::thank();
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOENT));
            // If it did not give way, the grace was over first.
            if gave_way {
                break;
            }
        }
    });
}

#[test]
fn a_forked_child_is_under_no_scheduler_and_may_start_its_own() {
    let machine = scheduler(2);
    as_member(&machine, |member| {
        until_stopped(member, 1);
        in_a_fork(|| {
            let inherited = member.account().stops;
            let begin = Instant::now();
            while begin.elapsed() < QUANTUM * 5 {
                spin_loop();
            }
            assert_eq!(member.account().stops, inherited, "no scheduler can stop it");
            thread::scope(|scope| {
                let refused = scope.spawn(|| machine.join().map(|_| ()));
                assert_eq!(refused.join().unwrap(), Err(Refused::Forked));
            });
            // A copy of the owner's scheduler: its drop waits for no thread.
            // SAFETY: the owner is the parent's thread, which is not in this process. This copy is
            // dropped once.
            drop(unsafe { core::ptr::read(&machine) });
            as_member(&scheduler(2), |own| until_stopped(own, 2));
        });
    });
    as_member(&machine, |member| until_stopped(member, 2));
}

#[test]
fn errno_is_kept() {
    as_member(&scheduler(2), |member| {
        std::fs::File::open("/no such file").unwrap_err();
        until_stopped(member, 3);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOENT));
    });
}

#[test]
fn threads_may_panic_end_and_forget() {
    let machine = scheduler(2);
    thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let member = machine.join().unwrap();
            until_stopped(&member, 1);
            std::panic::resume_unwind(Box::new("as it should"));
        });
        assert!(panics.join().is_err());
        scope.spawn(|| core::mem::forget(machine.join().unwrap())).join().unwrap();
    });
    // Other threads are stopped as before, and the end of the scheduler waits for no thread.
    as_member(&machine, |member| until_stopped(member, 2));
}

#[test]
fn a_thread_may_leave_and_join_again_but_not_twice_at_once() {
    let (one, other) = (scheduler(2), scheduler(2));
    let member = one.join().unwrap();
    assert_eq!(one.join().unwrap_err(), Refused::Member);
    assert_eq!(other.join().unwrap_err(), Refused::Member);
    until_stopped(&member, 1);
    drop(member);
    assert_ne!(preemption::means(), Means::Scheduler);
    let member = other.join().unwrap();
    until_stopped(&member, 1);
    drop(other);
    // No scheduler stops it any more; leaving late does no harm.
    drop(member);
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let refused =
        |settings: stanchion_multiprogramming::Settings| settings.start().map(drop).unwrap_err();
    assert_eq!(refused(Multiprogramming::level(0)), Refused::Level { level: 0 });
    assert_eq!(refused(Multiprogramming::level(65)), Refused::Level { level: 65 });
    let short = Duration::from_micros(99);
    let error = refused(Multiprogramming::level(2).quantum(short));
    assert_eq!(error.to_string(), "a quantum of 99µs: take one from 100 us to 10 s");
    let error = refused(Multiprogramming::level(2).signal(libc::SIGTERM));
    assert!(matches!(error, Refused::NotRealTime { signal: libc::SIGTERM, .. }), "{error}");
}

#[test]
fn a_signal_that_is_taken_is_refused() {
    let signal = libc::SIGRTMAX() - 1;
    // SAFETY: ignores a signal that no thread sends.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
    let error = Multiprogramming::level(2).signal(signal).start().map(drop).unwrap_err();
    assert_eq!(error, Refused::Taken { signal });
    let free = Multiprogramming::level(2).quantum(QUANTUM).signal(signal - 1).start().unwrap();
    as_member(&free, |member| until_stopped(member, 1));
    drop(free);
    // This process's handler has the signal by now.
    assert!(Multiprogramming::level(2).signal(signal - 1).start().is_ok());
}
