//! Affinity does not leak: kernel threads run where their runtime may, whichever thread starts
//! them.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};

use stanchion_activations::{Runtime, blocking, spawn, yield_now};
use stanchion_machine::topology::{self, processors};
use stanchion_threadpool::ThreadPool;

/// Keeps the calling kernel thread on its first processor, as foreign code does.
fn pin_for_good() {
    // SAFETY: zeros are the empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the set is live. A number beyond its end changes nothing.
    unsafe { libc::CPU_SET(processors()[0], &mut set) };
    // SAFETY: a set of that size.
    assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) }, 0);
}

#[test]
fn a_kernel_thread_that_a_pinned_one_starts_may_run_everywhere() {
    let all = processors();
    let runtime = Runtime::new(1).unwrap();
    let (sends, receives) = mpsc::channel();
    let pinned = runtime.spawn(move || {
        pin_for_good();
        // Something is ready when it blocks, so it starts a kernel thread for its slot.
        let elsewhere = spawn(move || {
            sends.send(()).unwrap();
            processors()
        });
        blocking(|| receives.recv().unwrap());
        (processors(), elsewhere)
    });
    let (here, elsewhere) = pinned.join().unwrap();
    assert_eq!(here, all[..1], "it stays where foreign code has put it");
    assert_eq!(elsewhere.join().unwrap(), all);
}

#[test]
fn pools_and_runtimes_that_are_made_inside_a_pinned_runtime_use_all_processors() {
    let all = processors();
    let most = topology::parallelism();
    let pinned = Runtime::builder().processors(2).pinned(true).build().unwrap();
    let inside = all.clone();
    pinned.run(move || {
        assert_eq!(processors().len(), 1);
        assert_eq!(topology::parallelism(), most);
        let runtime = Runtime::new(0).unwrap();
        assert_eq!(runtime.processors(), most);
        assert_eq!(runtime.run(processors), inside);
    });
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let sees = seen.clone();
    pinned.run(move || {
        let pool = Runtime::builder().pinned(true).build().unwrap();
        assert_eq!(pool.processors(), most);
        let threads: Vec<_> = (0..4 * most)
            .map(|_| {
                let sees = sees.clone();
                pool.spawn(move || {
                    sees.lock().unwrap().extend(processors());
                    yield_now();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert!(seen.lock().unwrap().iter().all(|processor| all.contains(processor)));
    let workers = all.clone();
    pinned.run(move || {
        let pool = ThreadPool::new(0).unwrap();
        assert_eq!(pool.current_num_threads(), most);
        assert!(pool.broadcast(|_| processors()).iter().all(|seen| *seen == workers));
    });
}
