//! Threads that may go on on another kernel thread after each pause.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use stanchion_activations::{
    Builder, JoinHandle, Runtime, blocking, current, park, spawn, yield_now,
};

/// Spawns a thread that migrates.
fn migrant<T: Send + 'static>(
    runtime: &Runtime,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    // SAFETY: the bodies of these tests keep nothing of the kernel thread's across a pause. They
    // ask a function that is not inlined for the kernel thread's number.
    unsafe { Builder::new().on(runtime).spawn_migratable(body) }
}

#[inline(never)]
fn kernel_thread() -> std::thread::ThreadId {
    std::thread::current().id()
}

#[test]
fn ten_thousand_parks_on_four_workers_beside_others() {
    const ROUNDS: usize = 10_000;
    let runtime = Runtime::new(4).unwrap();
    let rounds = Arc::new(AtomicUsize::new(0));
    let parks = {
        let rounds = rounds.clone();
        migrant(&runtime, move || {
            let mut seen = std::collections::HashSet::new();
            // What lies on its stack goes with it.
            let mut sum = 0_u64;
            for round in 1..=ROUNDS {
                while rounds.load(Ordering::Acquire) < round {
                    park();
                }
                seen.insert(kernel_thread());
                sum += round as u64;
            }
            (seen.len(), sum)
        })
    };
    let others: Vec<_> = (0..8)
        .map(|number| {
            runtime.spawn(move || {
                for _ in 0..1_000 {
                    if number % 2 == 0 { yield_now() } else { spawn(|| ()).join().unwrap() }
                }
            })
        })
        .collect();
    let wakers: Vec<_> = (0..4)
        .map(|_| {
            let (rounds, thread) = (rounds.clone(), parks.thread().clone());
            runtime.spawn(move || {
                for _ in 0..ROUNDS / 4 {
                    rounds.fetch_add(1, Ordering::Release);
                    thread.unpark();
                    yield_now();
                }
            })
        })
        .collect();
    wakers.into_iter().chain(others).for_each(|thread| thread.join().unwrap());
    let (workers, sum) = parks.join().unwrap();
    assert!((1..=4 + 64).contains(&workers));
    assert_eq!(sum, (ROUNDS * (ROUNDS + 1) / 2) as u64);
}

#[test]
fn unwinding_thread_stays_and_migrates_again_afterwards() {
    struct Yields(Arc<AtomicUsize>);
    impl Drop for Yields {
        fn drop(&mut self) {
            let here = kernel_thread();
            for _ in 0..20 {
                yield_now();
                self.0.fetch_add(usize::from(kernel_thread() != here), Ordering::Relaxed);
            }
        }
    }
    let runtime = Runtime::new(4).unwrap();
    let moved = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..20)
        .map(|_| {
            let moved = moved.clone();
            migrant(&runtime, move || {
                for _ in 0..5 {
                    yield_now();
                    let moved = moved.clone();
                    panic::catch_unwind(|| {
                        let _yields = Yields(moved);
                        panic!("to unwind");
                    })
                    .unwrap_err();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(moved.load(Ordering::Relaxed), 0, "times that one moved while it unwound");
    // No kernel thread has been left with a wrong count.
    let unwinding: Vec<_> = (0..50).map(|_| runtime.spawn(std::thread::panicking)).collect();
    assert!(unwinding.into_iter().all(|thread| !thread.join().unwrap()));
}

#[inline(never)]
fn note(seen: &Mutex<Vec<std::thread::ThreadId>>) {
    seen.lock().unwrap().push(kernel_thread());
}

/// One processor: the helper begins where the migrant did, and blocks that until the migrant has
/// gone on elsewhere.
#[test]
fn one_of_a_scope_goes_on_while_the_kernel_thread_that_it_began_on_is_blocked() {
    let runtime = Runtime::builder().processors(1).activations(false).build().unwrap();
    let (went_on, goes_on) = mpsc::channel();
    let seen = Mutex::new(Vec::new());
    runtime.scope(|s| {
        let body = || {
            note(&seen);
            let migrant = current();
            let helper = spawn(move || {
                migrant.unpark();
                blocking(|| goes_on.recv_timeout(Duration::from_secs(60)))
            });
            park();
            note(&seen);
            went_on.send(()).unwrap();
            assert_eq!(helper.join().unwrap(), Ok(()), "it waited for its kernel thread");
        };
        // SAFETY: it borrows nothing of a kernel thread's, and thread-locals are used in a
        // function that is not inlined.
        unsafe { Builder::new().spawn_scoped_migratable(s, body) };
    });
    let seen = seen.into_inner().unwrap();
    assert_ne!(seen[0], seen[1]);
}
