//! Models of sleeping on a word: no wake-up is lost. A sleeper may wake for no reason, and any
//! deadline may pass.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, park, thread};
use stanchion_machine_loom as stanchion_machine;

use Ordering::{Acquire, Release};

/// One thread waits for a flag, and another thread sets it. The setter calls `wake` after the
/// store.
fn wait_for_a_flag(wake: fn(&AtomicU32), deadline: fn() -> Deadline) {
    let flag = Arc::new(AtomicU32::new(0));
    let setter = {
        let flag = flag.clone();
        thread::spawn(move || {
            flag.store(1, Release);
            wake(&flag);
        })
    };
    while flag.load(Acquire) == 0 {
        park::wait(&flag, 0, deadline());
    }
    setter.join().unwrap();
}

#[test]
fn park_loses_no_wake_up() {
    let explored = Model::new().check(|| {
        wait_for_a_flag(|flag| _ = park::wake_one(flag), || Deadline::NEVER);
    });
    println!("model park_loses_no_wake_up: {explored}");
}

#[test]
fn park_with_a_deadline_loses_no_wake_up() {
    let explored = Model::new().check(|| {
        let deadline = || Deadline::after(core::time::Duration::from_millis(1));
        wait_for_a_flag(|flag| _ = park::wake_one(flag), deadline);
    });
    println!("model park_with_a_deadline_loses_no_wake_up: {explored}");
}

#[test]
fn park_wakes_two_sleepers_preemptions_2() {
    let explored = Model::new().preemptions(2).check(|| {
        let flag = Arc::new(AtomicU32::new(0));
        let sleeper = {
            let flag = flag.clone();
            thread::spawn(move || {
                while flag.load(Acquire) == 0 {
                    park::wait(&flag, 0, Deadline::NEVER);
                }
            })
        };
        let setter = {
            let flag = flag.clone();
            thread::spawn(move || {
                flag.store(1, Release);
                park::wake_all(&flag);
            })
        };
        while flag.load(Acquire) == 0 {
            park::wait(&flag, 0, Deadline::NEVER);
        }
        sleeper.join().unwrap();
        setter.join().unwrap();
    });
    println!("model park_wakes_two_sleepers_preemptions_2: {explored}");
}

#[test]
fn park_without_a_wake_is_reported() {
    let lost = || _ = Model::new().choices(0).check(|| wait_for_a_flag(|_| (), || Deadline::NEVER));
    assert!(
        catch_unwind(AssertUnwindSafe(lost)).is_err(),
        "a sleeper that no thread wakes must be reported"
    );
}
