//! Processors that come and go: by the user's limit, and by what other runtimes want.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use stanchion_activations::{Arbiter, ArbiterError, Runtime, current, park, spawn, yield_now};

#[test]
fn threads_whose_processors_are_taken_and_given_back_all_end() {
    let runtime = Arc::new(Runtime::new(4).unwrap());
    let done = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..64)
        .map(|_| {
            let done = done.clone();
            runtime.spawn(move || {
                for _ in 0..200 {
                    let parent = current();
                    let child = spawn(move || parent.unpark());
                    park();
                    yield_now();
                    child.join().unwrap();
                }
                done.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    let mut most = 1;
    while done.load(Ordering::Relaxed) < 64 {
        assert_eq!(runtime.limit_processors(most), most);
        most = most % 4 + 1;
        std::thread::yield_now();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn none_is_as_much_as_one() {
    let runtime = Runtime::new(3).unwrap();
    assert_eq!(runtime.limit_processors(0), 1);
    assert_eq!(runtime.run(|| 5), 5);
    assert_eq!(runtime.limit_processors(usize::MAX), 3);
}

/// Threads that always have something to do, until told.
fn busy(runtime: &Runtime, stop: &Arc<AtomicBool>) {
    for _ in 0..3 * runtime.processors() {
        let stop = stop.clone();
        drop(runtime.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                yield_now();
            }
        }));
    }
}

#[test]
fn two_that_want_all_processors_have_half_of_them_each_and_one_alone_has_all() {
    let name = format!("test-{}", std::process::id());
    let online = std::thread::available_parallelism().unwrap().get();
    let shared = || {
        let arbiter = Arbiter::join(&name).unwrap();
        Runtime::builder().processors(online).arbiter(arbiter).build().unwrap()
    };
    let path = Arbiter::join(&name).unwrap().path().to_owned();
    let (first, second) = (shared(), shared());
    let stop = Arc::new(AtomicBool::new(false));
    busy(&first, &stop);
    busy(&second, &stop);
    let uses = |runtime: &Runtime| runtime.limit_processors(usize::MAX);
    // Each ends only if the shares become what they should.
    while uses(&first) > online.div_ceil(2) || uses(&second) > online.div_ceil(2) {
        std::thread::yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    drop(second);
    let stop = Arc::new(AtomicBool::new(false));
    busy(&first, &stop);
    // A processor is asked for only if there is a thread to run on it.
    while uses(&first) < online {
        drop(first.spawn(yield_now));
        std::thread::yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_cannot_be_shared_is_refused_clearly() {
    for name in ["", "../x", "a b", &"x".repeat(65)] {
        let refused = Arbiter::join(name).unwrap_err();
        assert!(matches!(refused, ArbiterError::Name { .. }), "{refused}");
        assert!(refused.to_string().contains("letters"), "{refused}");
    }
    let arbiter = Arbiter::join(&format!("test-pinned-{}", std::process::id())).unwrap();
    let path = arbiter.path().to_owned();
    let refused = Runtime::builder().processors(1).pinned(true).arbiter(arbiter).build();
    std::fs::remove_file(path).unwrap();
    assert!(refused.unwrap_err().to_string().contains("pinned"));
}
