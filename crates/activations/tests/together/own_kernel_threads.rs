//! Threads that wait in user space and threads that block their kernel thread, together: plain code
//! in which a thread must go on while another one blocks. No test measures time: where threads have
//! to block at the same time, they meet at a barrier of the standard library.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier, LazyLock, Mutex, mpsc};
use std::time::Duration;

use stanchion_activations::sync::{Semaphore, channel};
use stanchion_activations::{Runtime, sleep, spawn, yield_now};

/// Longer than any of these takes beside other programs.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs `body` on one and on two processors. Panics if it takes minutes, and leaves its threads
/// behind.
fn ends(body: fn(&Runtime)) {
    for processors in 1..=2 {
        let (says, hears) = mpsc::channel();
        let runs = std::thread::spawn(move || {
            let runtime = Arc::new(Runtime::new(processors).unwrap());
            says.send(Arc::downgrade(&runtime)).unwrap();
            body(&runtime);
            // Dropped here: a runtime with threads that wait for ever is not waited for.
            drop(runtime);
            says.send(std::sync::Weak::new()).unwrap();
        });
        let runtime = hears.recv().unwrap();
        let ended = hears.recv_timeout(LONGEST);
        if matches!(ended, Err(mpsc::RecvTimeoutError::Timeout)) {
            let runtime = runtime.upgrade();
            let said = runtime.as_ref().map(|it| (it.stalled(), it.metrics()));
            core::mem::forget(runtime);
            panic!("{processors} processors: {said:?}");
        }
        runs.join().unwrap();
    }
}

#[test]
fn threads_that_have_slept_in_user_space_block_at_the_same_time() {
    ends(|runtime| {
        let barrier = Arc::new(Barrier::new(20));
        let body = || {
            let barrier = barrier.clone();
            runtime.spawn(move || {
                sleep(Duration::from_millis(5));
                barrier.wait();
            })
        };
        let threads: Vec<_> = (0..20).map(|_| body()).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn holders_of_a_semaphore_block_at_the_same_time() {
    const PERMITS: u8 = 16;
    ends(|runtime| {
        let permits = Arc::new((Semaphore::new(PERMITS.into()), Barrier::new(PERMITS.into())));
        let body = || {
            let permits = permits.clone();
            runtime.spawn(move || {
                let _permit = permits.0.acquire();
                permits.1.wait();
            })
        };
        let threads: Vec<_> = (0..256).map(|_| body()).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn sessions_that_wait_at_a_channel_are_answered_while_readers_block() {
    ends(|runtime| {
        let (asks, asked) = channel::bounded(0);
        let (answers, answered) = mpsc::channel();
        let sessions: Vec<_> = (0..40)
            .map(|_| {
                let (asked, answers) = (asked.clone(), answers.clone());
                runtime.spawn(move || answers.send(asked.recv().unwrap()).unwrap())
            })
            .collect();
        let (ends, others): (Vec<_>, Vec<_>) = (0..20).map(|_| UnixStream::pair().unwrap()).unzip();
        let readers: Vec<_> = others
            .into_iter()
            .map(|mut from| runtime.spawn(move || from.read_exact(&mut [0]).unwrap()))
            .collect();
        for number in 0..40 {
            asks.send(number).unwrap();
        }
        let mut numbers: Vec<i32> = (0..40).map(|_| answered.recv().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
        assert!(readers.iter().all(|reader| !reader.is_finished()), "their pipes are silent");
        ends.into_iter().for_each(|mut end| end.write_all(&[1]).unwrap());
        readers.into_iter().chain(sessions).for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_crawler_with_a_semaphore_ends() {
    const DEPTH: usize = 3;
    fn visit(limit: Arc<Semaphore>, visited: Arc<AtomicUsize>, depth: usize) {
        {
            let _permit = limit.acquire();
            std::thread::sleep(Duration::from_millis(1));
        }
        visited.fetch_add(1, Relaxed);
        let links = if depth == DEPTH { 0 } else { 4 };
        let threads: Vec<_> = (0..links)
            .map(|_| {
                let (limit, visited) = (limit.clone(), visited.clone());
                spawn(move || visit(limit, visited, depth + 1))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    ends(|runtime| {
        let (limit, visited) = (Arc::new(Semaphore::new(8)), Arc::new(AtomicUsize::new(0)));
        let counts = visited.clone();
        runtime.spawn(move || visit(limit, counts, 0)).join().unwrap();
        assert_eq!(visited.load(Relaxed), 1 + 4 + 16 + 64);
    });
}

#[test]
fn a_std_mutex_may_be_held_while_its_thread_yields() {
    ends(|runtime| {
        let count = Arc::new(Mutex::new(0));
        let body = || {
            let count = count.clone();
            runtime.spawn(move || {
                for _ in 0..20 {
                    let mut count = count.lock().unwrap();
                    yield_now();
                    *count += 1;
                }
            })
        };
        let threads: Vec<_> = (0..8).map(|_| body()).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*count.lock().unwrap(), 160);
    });
}

#[test]
fn the_initialiser_of_a_lazy_lock_may_sleep_in_user_space() {
    ends(|runtime| {
        let lazy = Arc::new(LazyLock::<u32>::new(|| {
            sleep(Duration::from_millis(5));
            7
        }));
        let body = || {
            let lazy = lazy.clone();
            runtime.spawn(move || **lazy)
        };
        let threads: Vec<_> = (0..4).map(|_| body()).collect();
        let sum: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(sum, 28);
    });
}

#[test]
fn a_receiver_may_block_for_a_sender_that_has_waited_in_user_space() {
    ends(|runtime| {
        for _ in 0..20 {
            let (sends, receives) = mpsc::channel();
            let sender = runtime.spawn(move || {
                sleep(Duration::from_millis(1));
                sends.send(7).unwrap();
            });
            let receiver = runtime.spawn(move || receives.recv().unwrap());
            assert_eq!(receiver.join().unwrap(), 7);
            sender.join().unwrap();
        }
    });
}

#[test]
fn five_hundred_that_block_are_all_served() {
    ends(|runtime| {
        let (answers, answered) = mpsc::channel();
        let connections: Vec<_> = (0..500)
            .map(|number| {
                let (asks, asked) = mpsc::channel::<()>();
                let answers = answers.clone();
                let serves = runtime.spawn(move || {
                    asked.iter().for_each(|()| answers.send(number).unwrap());
                });
                (asks, serves)
            })
            .collect();
        for _ in 0..3 {
            connections.iter().for_each(|(asks, _)| asks.send(()).unwrap());
            let mut served: Vec<u32> = answered.iter().take(500).collect();
            served.sort_unstable();
            assert_eq!(served, (0..500).collect::<Vec<_>>());
        }
        for (asks, serves) in connections {
            drop(asks);
            serves.join().unwrap();
        }
    });
}
