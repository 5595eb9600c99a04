//! Tests that the harness can fail: each check catches the lock that is broken for it, and accepts
//! a correct lock.

use std::time::Duration;

use torture::contest::Fault;
use torture::locks::named;
use torture::phase::{Phase, Torture};

const TORTURE: Torture = Torture {
    time: Duration::from_secs(2),
    threads: Some(8),
    stuck_after: Duration::from_millis(700),
    seed: 1,
};

/// Returns the first fault of the lock with this name, if there is one.
fn faults_of(name: &str) -> Vec<Fault> {
    let entry = named(name).expect("the lock is registered");
    // As in the command: the first fault ends the torture of a lock.
    let faults = Phase::ALL.iter().filter_map(|phase| phase.run((entry.free)(), &TORTURE).err());
    faults.take(1).collect()
}

#[test]
fn two_holders_are_caught() {
    let faults = faults_of("busted");
    assert!(matches!(faults[..], [Fault::TwoHolders { .. }]), "{faults:?}");
}

#[test]
fn a_lost_release_is_caught() {
    let faults = faults_of("busted-wake");
    assert!(matches!(faults[..], [Fault::NoProgress(_)]), "{faults:?}");
}

#[test]
fn a_thread_that_is_never_served_is_caught() {
    let faults = faults_of("busted-fair");
    assert!(matches!(faults[..], [Fault::Starved { .. }]), "{faults:?}");
}

#[test]
fn a_right_lock_is_passed() {
    assert_eq!(faults_of("parking-lot"), []);
}
