//! Models of sleeping on a word: no wake-up is lost, whatever wakes for no reason and whichever deadline passes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use machine::atomic::{AtomicU32, Ordering};
use machine::clock::Deadline;
use machine::sync::Arc;
use machine::{Model, park, thread};
use stanchion_machine_loom as machine;

use Ordering::{Acquire, Release};

/// One waits for a door, the other opens it; `wake` is what the opener does after it has opened.
fn pass_the_door(wake: fn(&AtomicU32), deadline: fn() -> Deadline) {
    let door = Arc::new(AtomicU32::new(0));
    let opener = {
        let door = door.clone();
        thread::spawn(move || {
            door.store(1, Release);
            wake(&door);
        })
    };
    while door.load(Acquire) == 0 {
        park::wait(&door, 0, deadline());
    }
    opener.join().unwrap();
}

#[test]
fn park_loses_no_wake_up() {
    let explored = Model::new().check(|| {
        pass_the_door(|door| _ = park::wake_one(door), || Deadline::NEVER);
    });
    println!("model park_loses_no_wake_up: {explored}");
}

#[test]
fn park_with_a_deadline_loses_no_wake_up() {
    let explored = Model::new().check(|| {
        let deadline = || Deadline::after(core::time::Duration::from_millis(1));
        pass_the_door(|door| _ = park::wake_one(door), deadline);
    });
    println!("model park_with_a_deadline_loses_no_wake_up: {explored}");
}

#[test]
fn park_wakes_two_sleepers_preemptions_2() {
    let explored = Model::new().preemptions(2).check(|| {
        let door = Arc::new(AtomicU32::new(0));
        let sleeper = {
            let door = door.clone();
            thread::spawn(move || {
                while door.load(Acquire) == 0 {
                    park::wait(&door, 0, Deadline::NEVER);
                }
            })
        };
        let opener = {
            let door = door.clone();
            thread::spawn(move || {
                door.store(1, Release);
                park::wake_all(&door);
            })
        };
        while door.load(Acquire) == 0 {
            park::wait(&door, 0, Deadline::NEVER);
        }
        sleeper.join().unwrap();
        opener.join().unwrap();
    });
    println!("model park_wakes_two_sleepers_preemptions_2: {explored}");
}

#[test]
fn park_without_a_wake_is_reported() {
    let lost = || _ = Model::new().choices(0).check(|| pass_the_door(|_| (), || Deadline::NEVER));
    assert!(
        catch_unwind(AssertUnwindSafe(lost)).is_err(),
        "a sleeper that nobody wakes must be reported"
    );
}
