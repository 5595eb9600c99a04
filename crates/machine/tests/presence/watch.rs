//! Tests a sleeper that is woken by the switches of other threads.

use super::{Account, Watched, alone, in_a_fork, processors, records, refuse_perf_events, until};
use stanchion_machine::clock::Deadline;
use stanchion_machine::presence::watch::{Watch, Woken};
use stanchion_machine::presence::{self, Presence};
use stanchion_machine::thread;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(2))
}

/// Waits until `other` is seen as `wanted`, and sleeps in between until it switches. Nothing else
/// can wake the sleeper, so the wait does not end if a switch is missed.
fn sleep_until(watch: &Watch, other: &Watched, wanted: Presence) {
    loop {
        assert!(watch.arm(other.index));
        if presence::of(other.index) == wanted {
            return;
        }
        assert_eq!(watch.wait(Deadline::NEVER), Woken::Switched);
    }
}

#[test]
fn a_sleeper_is_woken_by_each_switch_it_is_armed_for() {
    let _account = Account::shared();
    if !records() {
        return;
    }
    let cpus = processors();
    for cpu in [cpus[0], cpus[cpus.len() - 1]] {
        let mut other = Watched::on(cpu);
        let watch = Watch::new();
        assert_eq!(watch.refused(), None);
        for _ in 0..5 {
            sleep_until(&watch, &other, Presence::Blocked);
            other.spin();
            sleep_until(&watch, &other, Presence::Running);
            other.spins.store(false, SeqCst);
        }
        sleep_until(&watch, &other, Presence::Blocked);
        let index = other.end();
        // Its end is a switch, if nothing before was.
        assert_eq!(watch.wait(Deadline::NEVER), Woken::Switched);
        until(|| !watch.arm(index));
        other = Watched::on(cpu);
        sleep_until(&watch, &other, Presence::Blocked);
        other.end();
    }
}

#[test]
fn a_switch_disarms() {
    let _account = Account::shared();
    if !records() {
        return;
    }
    let other = Watched::on(processors()[0]);
    let watch = Watch::new();
    sleep_until(&watch, &other, Presence::Blocked);
    watch.disarm(other.index);
    watch.disarm(other.index);
    let mut seen = 0;
    for _ in 0..20 {
        other.spin();
        other.spins.store(false, SeqCst);
        until(|| presence::of(other.index) == Presence::Blocked);
        seen += u32::from(watch.wait(Deadline::PAST) == Woken::Switched);
    }
    // At most the switch that happened before it was disarmed.
    assert!(seen <= 1, "{seen} of 20");
    other.end();
}

#[test]
fn who_is_not_registered_is_not_watched() {
    let _account = Account::shared();
    let watch = Watch::new();
    for index in [thread::INDICES - 1, thread::INDICES, usize::MAX] {
        assert!(!watch.arm(index));
        watch.disarm(index);
    }
    assert_eq!(watch.wait(soon()), Woken::TimedOut);
}

/// Runs two threads that wake each other in turn, with a watch each.
fn call_by_turns(turns: u32) {
    let watches = [Watch::new(), Watch::new()];
    let turn = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for me in [0, 1] {
            let (watches, turn) = (&watches, &turn);
            scope.spawn(move || {
                while turn.load(SeqCst) < turns {
                    if turn.load(SeqCst) % 2 == me {
                        turn.fetch_add(1, SeqCst);
                        watches[1 - me as usize].wake();
                    } else {
                        assert_ne!(watches[me as usize].wait(Deadline::NEVER), Woken::TimedOut);
                    }
                }
                watches[1 - me as usize].wake();
            });
        }
    });
}

#[test]
fn no_call_is_lost() {
    let _account = Account::shared();
    call_by_turns(400);
}

#[test]
fn a_refused_watch_sees_nothing_and_is_called_all_the_same() {
    let _account = Account::shared();
    alone("watch::a_refused_watch_sees_nothing_and_is_called_all_the_same", || {
        refuse_perf_events(libc::EPERM);
        let watch = Watch::new();
        assert_eq!(watch.refused(), presence::status().as_ref().err());
        assert!(watch.refused().is_some());
        let me = presence::register().unwrap();
        assert!(!watch.arm(me.index()));
        watch.disarm(me.index());
        assert_eq!(watch.wait(soon()), Woken::TimedOut);
        watch.wake();
        assert_eq!(watch.wait(Deadline::NEVER), Woken::Woken);
        call_by_turns(400);
    });
}

#[test]
fn a_child_leaves_its_parents_watch_alone() {
    let _account = Account::shared();
    alone("watch::a_child_leaves_its_parents_watch_alone", || {
        let watch = Watch::new();
        let me = presence::register().unwrap();
        let armed = watch.arm(me.index());
        in_a_fork(|| {
            let me = presence::register().unwrap();
            assert!(!watch.arm(me.index()));
            watch.disarm(me.index());
            watch.wake();
            assert_eq!(watch.wait(Deadline::NEVER), Woken::Woken);
            assert_eq!(watch.wait(soon()), Woken::TimedOut);
            let fresh = Watch::new();
            assert_eq!(fresh.arm(me.index()), armed);
        });
        // The parent has been switched while it waited for its child.
        watch.disarm(me.index());
        while watch.wait(soon()) == Woken::Switched {}
        assert_eq!(watch.wait(soon()), Woken::TimedOut, "the child's call is the child's");
    });
}
