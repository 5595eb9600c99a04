//! The locks that threads hold and wait for now, as this process and another one read them.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fs;
use std::panic::catch_unwind;
use std::sync::mpsc::channel;
use std::thread;

use stanchion_alone::{alone, in_a_fork};
use stanchion_order::current::{NAME, SIZE, ThreadState, own};
use stanchion_order::{
    Identity, Mode, Wait, WaitClass, mutex_acquired, mutex_released, report, switch_on,
};

/// Returns the number of the calling thread.
fn number() -> u32 {
    let own = fs::read_link("/proc/thread-self").expect("a thread has a folder");
    own.file_name().and_then(|name| name.to_str()).expect("a number").parse().expect("a number")
}

/// Returns the state of a thread, if it holds or awaits something.
fn state_of(thread: u32) -> Option<ThreadState> {
    let table = own().expect("this system has such memory");
    table.threads().into_iter().find(|state| state.thread == thread)
}

/// Returns the address that a raw lock behind the identity would have.
fn address(lock: &Identity) -> usize {
    std::ptr::from_ref(lock).addr() + size_of::<Identity>()
}

#[test]
fn a_thread_is_there_while_it_holds_or_awaits_a_lock() {
    alone("a_thread_is_there_while_it_holds_or_awaits_a_lock", || {
        switch_on();
        let (one, two) = (Identity::new(), Identity::new());
        let state = || state_of(number());
        assert_eq!(state(), None);
        let block = || {
            let awaited = state().and_then(|state| state.awaited).expect("it is awaited");
            assert_eq!((awaited.lock.number, awaited.is_condition), (1, false));
            assert!(awaited.since_ns > 0);
            assert!(awaited.lock.place.expect("there is room").contains("tests/current.rs:"));
        };
        one.acquire(Mode::Exclusive, || None, block);
        two.acquired(Mode::Shared);
        let held = state().expect("two locks are held").held;
        assert_eq!(held[0].address, address(&one) as u64);
        assert!(
            held[0].is_created && held[0].created.as_ref().is_some_and(|text| !text.is_empty())
        );
        assert_eq!(
            held.iter().map(|lock| lock.mode).collect::<Vec<_>>(),
            [Some(Mode::Exclusive), Some(Mode::Shared)]
        );
        one.released(Mode::Exclusive);
        two.changed(Mode::Shared, Mode::Upgradable);
        two.upgrading();
        let upgraded = state().expect("it is held");
        assert_eq!(upgraded.held.len(), 1);
        assert_eq!(upgraded.awaited.and_then(|awaited| awaited.lock.mode), Some(Mode::Exclusive));
        two.changed(Mode::Upgradable, Mode::Exclusive);
        two.released(Mode::Exclusive);
        one.trying(Mode::Shared);
        one.gave_up();
        assert_eq!(state(), None);
    });
}

#[test]
fn the_wait_for_a_condition_holds_no_mutex() {
    alone("the_wait_for_a_condition_holds_no_mutex", || {
        switch_on();
        let mutex = Identity::new();
        let address = address(&mutex);
        mutex.acquired(Mode::Exclusive);
        let wait = Wait::begin(0x7000);
        wait.sleeping(|| mutex_released(address));
        let state = state_of(number()).expect("it waits");
        assert!(state.held.is_empty(), "{state:?}");
        assert_eq!(state.wait.map(|wait| wait.address), Some(0x7000));
        let awaited = state.awaited.expect("the mutex is taken again");
        assert_eq!((awaited.lock.number, awaited.is_condition), (1, true));
        wait.end(true);
        let state = state_of(number()).expect("it awaits the mutex");
        assert_eq!((state.wait, state.held.len()), (None, 0));
        assert!(state.awaited.is_some_and(|awaited| !awaited.is_condition));
        mutex_acquired(address);
        let state = state_of(number()).expect("it holds the mutex");
        assert_eq!((state.awaited, state.held.len()), (None, 1));
        // Outside of a wait these say nothing: the wrapper does.
        mutex_released(address);
        assert_eq!(state_of(number()).map(|state| state.held.len()), Some(1));
        mutex.released(Mode::Exclusive);
    });
}

#[test]
fn a_mutex_that_is_slept_for_after_a_condition_is_held_again() {
    alone("a_mutex_that_is_slept_for_after_a_condition_is_held_again", || {
        switch_on();
        let mutex = Identity::new();
        let (address, condition) = (address(&mutex), 0x7000);
        mutex.acquired(Mode::Exclusive);
        let wait = Wait::begin(condition);
        wait.sleeping(|| mutex_released(address));
        wait.end(true);
        // Another thread has taken the mutex meanwhile.
        let wait = Wait::begin(address);
        wait.sleeping(|| ());
        wait.end(true);
        mutex_acquired(address);
        let state = state_of(number()).expect("it holds the mutex");
        assert_eq!((state.awaited, state.held.len()), (None, 1));
        mutex.released(Mode::Exclusive);
        let report = report();
        assert_eq!(report.losses.unseen_releases, 0);
        let mut counts: Vec<_> =
            report.waits.iter().map(|wait| (wait.class, wait.count, wait.address)).collect();
        counts.sort_by_key(|&(.., at)| at);
        let both = [(WaitClass::Condition, 1, condition), (WaitClass::Lock, 1, address)];
        assert_eq!(counts, both);
    });
}

#[test]
fn a_wait_that_panics_is_over() {
    alone("a_wait_that_panics_is_over", || {
        switch_on();
        let mutex = Identity::new();
        mutex.acquired(Mode::Exclusive);
        let panics = || {
            let wait = Wait::begin(0x7000);
            wait.sleeping(|| panic!("before it sleeps"));
            wait.end(true);
        };
        assert!(catch_unwind(panics).is_err());
        // It falls asleep no more, so this is none of its releases.
        mutex_released(address(&mutex));
        let state = state_of(number()).expect("it holds the mutex");
        assert_eq!((state.wait, state.held.len()), (None, 1));
        mutex.released(Mode::Exclusive);
    });
}

#[test]
fn slots_of_threads_that_have_ended_are_used_again_unless_they_hold_a_lock() {
    let test = "slots_of_threads_that_have_ended_are_used_again_unless_they_hold_a_lock";
    alone(test, || {
        switch_on();
        let (lock, kept) = (Identity::new(), Identity::new());
        // More than there are slots.
        for _ in 0..3_000 {
            let take = || {
                lock.acquired(Mode::Exclusive);
                lock.released(Mode::Exclusive);
            };
            thread::scope(|scope| scope.spawn(take).join()).expect("no panic");
        }
        let table = own().expect("this system has such memory");
        assert_eq!(table.unseen(), 0);
        assert!(table.threads().is_empty());
        let keep = || {
            kept.acquired(Mode::Exclusive);
            number()
        };
        let ended = thread::scope(|scope| scope.spawn(keep).join()).expect("no panic");
        let state = state_of(ended).expect("the lock stays taken");
        assert_eq!((state.held.len(), state.has_ended), (1, true));
    });
}

#[test]
fn more_threads_than_slots_are_counted() {
    alone("more_threads_than_slots_are_counted", || {
        switch_on();
        let lock = Identity::new();
        let count = 2_200;
        let (mut ends, (taken, all_taken)) = (Vec::new(), channel());
        thread::scope(|scope| {
            for _ in 0..count {
                let (end, ended) = channel::<()>();
                let (taken, lock) = (taken.clone(), &lock);
                let builder = thread::Builder::new().stack_size(64 << 10);
                let thread = builder.spawn_scoped(scope, move || {
                    lock.acquired(Mode::Shared);
                    taken.send(()).expect("the test receives it");
                    let _ = ended.recv();
                    lock.released(Mode::Shared);
                });
                thread.expect("a thread is spawned");
                ends.push(end);
            }
            (0..count).for_each(|_| all_taken.recv().expect("each thread sends"));
            let table = own().expect("this system has such memory");
            assert_eq!(table.threads().len() as u64 + table.unseen(), count);
            assert!(table.unseen() >= count - 2_048, "{}", table.unseen());
            ends.clear();
        });
    });
}

#[test]
fn another_process_opens_the_memory_and_the_child_of_a_fork_leaves_it_alone() {
    let test = "another_process_opens_the_memory_and_the_child_of_a_fork_leaves_it_alone";
    alone(test, || {
        switch_on();
        let lock = Identity::new();
        lock.acquired(Mode::Exclusive);
        let is_ours = |entry: &fs::DirEntry| {
            fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == NAME)
        };
        let files = fs::read_dir("/proc/self/fd").expect("descriptors are listed");
        let file = files.flatten().find(is_ours).expect("the memory has a descriptor");
        assert_eq!(fs::metadata(file.path()).expect("it is open").len(), SIZE as u64);
        let before = own().expect("it is there").threads();
        in_a_fork(|| {
            lock.released(Mode::Exclusive);
            assert_ne!(own().expect("it is inherited").process(), std::process::id());
            std::process::exit(0);
        });
        assert_eq!(own().expect("it is there").threads(), before);
        lock.released(Mode::Exclusive);
    });
}
