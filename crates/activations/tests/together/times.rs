//! Times: an idle worker notifies a thread that waits for a time when that has come, and not after
//! the thread has gone on.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stanchion_activations::{
    Builder, Runtime, current, park, park_timeout, sleep, spawn, yield_now,
};

#[test]
fn sleep_lasts_as_long_as_asked_despite_unparks() {
    for processors in 1..=4 {
        let runtime = Runtime::new(processors).unwrap();
        let sleepers: Vec<_> = (0..20)
            .map(|_| {
                runtime.spawn(|| {
                    let started = Instant::now();
                    sleep(Duration::from_millis(5));
                    assert!(started.elapsed() >= Duration::from_millis(5));
                })
            })
            .collect();
        for _ in 0..50 {
            sleepers.iter().for_each(|sleeper| sleeper.thread().unpark());
        }
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    }
    let started = Instant::now();
    sleep(Duration::from_millis(2));
    assert!(started.elapsed() >= Duration::from_millis(2), "a kernel thread as well");
}

#[test]
fn waits_of_the_runtimes_own_leave_the_token() {
    let body = |runtime: &Runtime| {
        let runtime_thread = runtime.spawn(|| sleep(Duration::from_millis(1)));
        current().unpark();
        runtime_thread.join().unwrap();
        sleep(Duration::from_micros(100));
        runtime.scope(|s| {
            s.spawn(|| sleep(Duration::from_micros(100)));
        });
        assert!(park_timeout(Duration::ZERO), "the token is still there");
        assert!(!park_timeout(Duration::ZERO), "there was one");
    };
    let runtime = Arc::new(Runtime::new(2).unwrap());
    body(&runtime);
    let inside = runtime.clone();
    runtime.run(move || body(&inside));
}

#[test]
fn an_unpark_beside_the_time_is_never_lost() {
    for processors in 1..=3 {
        let runtime = Runtime::new(processors).unwrap();
        runtime.run(|| {
            let go = Arc::new(AtomicUsize::new(0));
            let seen = Arc::new(AtomicUsize::new(0));
            let waiter = {
                let (go, seen) = (go.clone(), seen.clone());
                spawn(move || {
                    for round in 1..=500 {
                        // As the time is short, it passes as the unpark comes. If both are told
                        // apart rightly, one of the parks says that it was unparked.
                        let mut told = 0;
                        while told == 0 {
                            told += usize::from(park_timeout(Duration::from_micros(round % 60)));
                        }
                        assert_eq!(go.load(Ordering::Acquire), round as usize);
                        seen.store(round as usize, Ordering::Release);
                    }
                })
            };
            for round in 1..=500 {
                go.store(round, Ordering::Release);
                waiter.thread().unpark();
                while seen.load(Ordering::Acquire) != round {
                    yield_now();
                }
            }
            waiter.join().unwrap();
        });
    }
}

/// More would try the making of stacks, which `many.rs` does.
#[test]
fn many_times_at_once() {
    const SLEEPERS: u64 = 4_000;
    let runtime = Runtime::new(2).unwrap();
    let woken = Arc::new(AtomicUsize::new(0));
    runtime.run({
        let woken = woken.clone();
        move || {
            let sleepers: Vec<_> = (0..SLEEPERS)
                .map(|number| {
                    let woken = woken.clone();
                    // Half of them are woken long before.
                    spawn(move || {
                        let long = if number % 2 == 0 { 3_600_000_000 } else { number % 1_000 };
                        park_timeout(Duration::from_micros(long));
                        woken.fetch_add(1, Ordering::Relaxed);
                    })
                })
                .collect();
            for (number, sleeper) in sleepers.into_iter().enumerate() {
                if number % 2 == 0 {
                    sleeper.thread().unpark();
                }
                sleeper.join().unwrap();
            }
        }
    });
    assert_eq!(woken.load(Ordering::Relaxed), SLEEPERS as usize);
}

#[test]
fn busy_worker_does_not_delay_timers() {
    let runtime = Runtime::new(2).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let (started, tells) = std::sync::mpsc::channel();
    let computes = {
        let done = done.clone();
        runtime.spawn(move || {
            // It adds a time, then computes without a scheduling point until another thread has
            // found that the time has come.
            let sleeper = {
                let (done, me) = (done.clone(), current());
                spawn(move || {
                    let body = move || {
                        sleep(Duration::from_millis(2));
                        done.store(true, Ordering::Release);
                        me.unpark();
                    };
                    started.send(()).unwrap();
                    // SAFETY: it uses nothing of the kernel thread's.
                    unsafe { Builder::new().spawn_migratable(body) }
                })
            };
            sleeper.join().unwrap();
            while !done.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            park();
        })
    };
    tells.recv().unwrap();
    computes.join().unwrap();
}

/// A thread that migrates sleeps; then one on each processor blocks in the kernel until the first
/// has gone on.
fn sleeps_beside_threads_that_block(runtime: &Runtime) {
    for round in 0..5 {
        let (ends, others): (Vec<_>, Vec<_>) =
            (0..runtime.processors()).map(|_| UnixStream::pair().unwrap()).unzip();
        let sleeper = move || {
            sleep(Duration::from_millis(1 + 4 * round));
            ends.into_iter().for_each(|mut end| end.write_all(&[1]).unwrap());
        };
        // SAFETY: it uses nothing of the kernel thread's.
        let sleeper = unsafe { Builder::new().on(runtime).spawn_migratable(sleeper) };
        let block: Vec<_> = others
            .into_iter()
            .map(|mut from| runtime.spawn(move || from.read_exact(&mut [0]).unwrap()))
            .collect();
        sleeper.join().unwrap();
        block.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn blocked_worker_does_not_delay_timers() {
    for processors in 1..=3 {
        sleeps_beside_threads_that_block(&Runtime::new(processors).unwrap());
    }
}

#[test]
fn blocked_worker_does_not_delay_an_earlier_timer() {
    let runtime = Runtime::new(1).unwrap();
    let late = runtime.spawn(|| park_timeout(Duration::from_secs(3_600)));
    sleeps_beside_threads_that_block(&runtime);
    late.thread().unpark();
    assert!(late.join().unwrap());
}

#[test]
fn a_time_beyond_the_end_of_the_clock_never_comes() {
    let runtime = Runtime::new(1).unwrap();
    let parked = runtime.spawn(|| park_timeout(Duration::MAX));
    parked.thread().unpark();
    assert!(parked.join().unwrap());
    assert!(!runtime.run(|| park_timeout(Duration::ZERO)));
}

/// Also if the others are run one after the other on the same stack, without a look at anything
/// else in between.
#[test]
fn short_ready_threads_do_not_delay_a_due_timer() {
    let runtime = Runtime::builder().processors(1).activations(false).build().unwrap();
    let behind = runtime.run(|| {
        let over = Arc::new(AtomicBool::new(false));
        let sleeper = {
            let (over, me) = (over.clone(), current());
            spawn(move || {
                me.unpark();
                sleep(Duration::from_millis(2));
                over.store(true, Ordering::Relaxed);
            })
        };
        park();
        // The sleeper waits by now.
        let begun = Instant::now();
        let threads: Vec<_> = (0..40)
            .map(|_| {
                let over = over.clone();
                spawn(move || {
                    // The first one computes until the time has come.
                    while begun.elapsed() < Duration::from_millis(10) {
                        std::hint::spin_loop();
                    }
                    over.load(Ordering::Relaxed)
                })
            })
            .collect();
        sleeper.join().unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|&over| over).count()
    });
    assert!(behind >= 39, "it goes on after the first of them, not after {}", 40 - behind);
}
