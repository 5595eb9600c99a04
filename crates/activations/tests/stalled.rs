//! Threads that wait for each other: that they are reported when nothing in their runtime can wake
//! them, and not before.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stanchion_activations::sync::Mutex;
use stanchion_activations::{Builder, Runtime, Stalled, current, park, park_timeout, sleep, spawn};

/// Returns the report, once all that run have come to rest.
fn stalls(runtime: &Runtime) -> Stalled {
    let started = Instant::now();
    loop {
        if let Some(stalled) = runtime.stalled() {
            return stalled;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "{}", runtime.metrics());
        std::thread::yield_now();
    }
}

#[test]
fn two_that_lock_in_opposite_order_are_named() {
    for processors in 1..=3 {
        let runtime = Runtime::new(processors).unwrap();
        assert_eq!(runtime.stalled(), None, "there is no thread");
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        let has = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let threads: Vec<_> = (0..2)
            .map(|own| {
                let (locks, has) = (locks.clone(), has.clone());
                Builder::new().name(format!("philosopher {own}")).on(&runtime).spawn(move || {
                    let first = locks[own].lock();
                    has[own].store(true, Ordering::Release);
                    while !has[1 - own].load(Ordering::Acquire) {
                        stanchion_activations::yield_now();
                    }
                    // The other's lock: no thread gets it before this one is helped.
                    let second = locks[1 - own].try_lock_for(Duration::from_millis(1));
                    assert!(second.is_none());
                    park();
                    drop(first);
                })
            })
            .collect();
        let stalled = stalls(&runtime);
        assert_eq!(stalled.waiting(), 2);
        let mut names = stalled.names().to_vec();
        names.sort();
        assert_eq!(names, ["philosopher 0", "philosopher 1"]);
        assert!(stalled.to_string().starts_with("2 threads wait"), "{stalled}");
        // Something outside.
        threads.iter().for_each(|thread| thread.thread().unpark());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(runtime.stalled(), None, "all have ended");
    }
}

#[test]
fn a_thread_that_joins_one_that_waits_is_counted_with_it() {
    let runtime = Runtime::new(2).unwrap();
    let (given, takes) = std::sync::mpsc::channel();
    let joins = runtime.spawn(move || {
        let waits = spawn(park);
        given.send(waits.thread().clone()).unwrap();
        waits.join().unwrap();
    });
    let stalled = stalls(&runtime);
    assert_eq!((stalled.waiting(), stalled.names().len()), (2, 0));
    assert!(stalled.to_string().contains("2 without a known name"), "{stalled}");
    takes.recv().unwrap().unpark();
    joins.join().unwrap();
}

#[test]
fn threads_in_a_sleep_or_in_the_kernel_are_not_stalled() {
    let runtime = Runtime::new(2).unwrap();
    let parked = runtime.spawn(park);
    assert_eq!(stalls(&runtime).waiting(), 1);
    let until = Arc::new(AtomicBool::new(false));
    let ends = |thread: stanchion_activations::JoinHandle<()>| {
        while !until.load(Ordering::Acquire) {
            let stalled = runtime.stalled();
            // It may have ended since.
            if !until.load(Ordering::Acquire) {
                assert_eq!(stalled, None, "{}", runtime.metrics());
            }
        }
        thread.join().unwrap();
        assert_eq!(stalls(&runtime).waiting(), 1);
    };
    let done = until.clone();
    ends(runtime.spawn(move || {
        sleep(Duration::from_millis(20));
        done.store(true, Ordering::Release);
    }));
    until.store(false, Ordering::Release);
    let done = until.clone();
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let writes = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        here.write_all(&[1]).unwrap();
    });
    ends(runtime.spawn(move || {
        there.read_exact(&mut [0]).unwrap();
        done.store(true, Ordering::Release);
    }));
    writes.join().unwrap();
    parked.thread().unpark();
    parked.join().unwrap();
}

/// On every number of processors each wakes the other before it sleeps, so that at no moment all
/// sleep.
#[test]
fn threads_that_wake_each_other_are_never_reported() {
    for processors in 1..=4 {
        let runtime =
            Runtime::builder().processors(processors).idle_spin(Duration::ZERO).build().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        let pair = runtime.spawn(move || {
            let main = current();
            let other = spawn(move || {
                for _ in 0..20_000 {
                    park();
                    main.unpark();
                }
            });
            for _ in 0..20_000 {
                other.thread().unpark();
                park();
            }
            over.store(true, Ordering::Release);
            other.join().unwrap();
        });
        let mut looks = 0;
        while !ended.load(Ordering::Acquire) {
            let stalled = runtime.stalled();
            if !ended.load(Ordering::Acquire) {
                assert_eq!(stalled, None, "look {looks}, {}", runtime.metrics());
            }
            looks += 1;
        }
        pair.join().unwrap();
        assert!(!park_timeout(Duration::ZERO));
    }
}

/// As many kernel threads as there may be: the two share the only one.
#[test]
fn a_ready_thread_behind_one_that_blocks_its_kernel_thread_is_reported() {
    let runtime = Runtime::builder().processors(1).spare_kernel_threads(0).build().unwrap();
    let named = |name: &str| Builder::new().name(name).on(&runtime);
    let waits = named("waits").spawn(park);
    assert_eq!(stalls(&runtime).blocked_by(), None);
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = has_begun.clone();
    let blocks = named("blocks").spawn(move || {
        begins.store(true, Ordering::Release);
        there.read_exact(&mut [0]).unwrap();
    });
    while !has_begun.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    assert_eq!(runtime.stalled(), None, "nothing is ready, and the read may end");
    waits.thread().unpark();
    let stalled = stalls(&runtime);
    assert_eq!((stalled.waiting(), stalled.names()), (1, &["waits".into()][..]));
    assert_eq!(stalled.blocked_by(), Some(&["blocks".into()][..]));
    assert!(stalled.to_string().contains("(by blocks): waits"), "{stalled}");
    assert_eq!(runtime.metrics().held_up, 1);
    here.write_all(&[1]).unwrap();
    blocks.join().unwrap();
    waits.join().unwrap();
    assert_eq!((runtime.stalled(), runtime.metrics().held_up), (None, 0));
}

#[test]
fn a_thread_that_spins_while_others_are_ready_keeps_its_processor() {
    let runtime = Runtime::new(1).unwrap();
    let flag = Arc::new(AtomicBool::new(false));
    let (seen, sets) = (flag.clone(), flag.clone());
    let spins = Builder::new().name("spins").on(&runtime).spawn(move || {
        while !seen.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    });
    let sets = runtime.spawn(move || sets.store(true, Ordering::Release));
    let started = Instant::now();
    loop {
        let keeps = runtime.long_running_threads();
        if !keeps.is_empty() {
            assert_eq!(keeps, [Some("spins".into())]);
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "{}", runtime.metrics());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!sets.is_finished(), "it waits for the only processor");
    // From outside.
    flag.store(true, Ordering::Release);
    spins.join().unwrap();
    sets.join().unwrap();
    assert!(runtime.long_running_threads().is_empty());
}
