//! Panic hooks that wait. Each test has a process of its own, as a hook is the process's.
#![cfg(unix)]

mod alone;

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alone::alone;
use stanchion_activations::{Runtime, sleep, sync, yield_now};

/// The number of threads that panic.
const PANICS: usize = 40;

/// Installs a hook that waits in each way that there is, and returns how often it has run.
fn install() -> Arc<AtomicUsize> {
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = ran.clone();
    let log = sync::Mutex::new(());
    panic::set_hook(Box::new(move |_| {
        let _log = log.lock();
        yield_now();
        sleep(Duration::from_micros(200));
        std::thread::sleep(Duration::from_micros(200));
        counts.fetch_add(1, Ordering::Relaxed);
    }));
    ran
}

/// Has threads panic that wait before, or not, and expects that each panic is its thread's own.
fn all_panic(runtime: &Runtime, waits: bool) {
    let threads: Vec<_> = (0..PANICS)
        .map(|number| {
            runtime.spawn(move || {
                if waits {
                    yield_now();
                }
                panic::panic_any(number);
            })
        })
        .collect();
    for (number, thread) in threads.into_iter().enumerate() {
        let payload = thread.join().unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&number));
    }
}

#[test]
fn a_hook_that_waits_in_sync_is_run_by_each_thread_that_panics() {
    alone("a_hook_that_waits_in_sync_is_run_by_each_thread_that_panics", || {
        let ran = install();
        for processors in [1, 2] {
            let runtime = Runtime::new(processors).unwrap();
            all_panic(&runtime, false);
            all_panic(&runtime, true);
        }
        assert_eq!(ran.load(Ordering::Relaxed), 4 * PANICS);
    });
}

#[test]
fn a_hook_waits_where_nothing_tells_of_blocks() {
    alone("a_hook_waits_where_nothing_tells_of_blocks", || {
        let ran = install();
        let runtime = Runtime::builder().processors(1).activations(false).build().unwrap();
        all_panic(&runtime, false);
        all_panic(&runtime, true);
        assert_eq!(ran.load(Ordering::Relaxed), 2 * PANICS);
    });
}
