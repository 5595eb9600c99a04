//! Futures on the simulated machines: wake-ups at any time, before, while and after the pool ends.
//! No thread waits for ever (that is reported), every future is dropped once, and all outputs that
//! were awaited inside of the pool are there.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use stanchion_machine::{hint, thread};
use stanchion_simulator::{Arena, Simulation, Time, machines};
use stanchion_threadpool_simulated::strategy::{
    IdleQueue, LocalReadyQueue, Strategy, WorkStealing,
};
use stanchion_threadpool_simulated::{Cancelled, JoinHandle, ThreadPoolBuilder};

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// A channel; its lock is never held while something is simulated.
#[derive(Default)]
struct Channel(Mutex<(VecDeque<u64>, Option<Waker>)>);

impl Channel {
    fn send(&self, value: u64) {
        let mut inner = self.0.lock().unwrap();
        inner.0.push_back(value);
        let waker = inner.1.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<u64> {
        let waker = cx.waker().clone();
        let mut inner = self.0.lock().unwrap();
        let polled = match inner.0.pop_front() {
            Some(value) => Poll::Ready(value),
            None => {
                inner.1 = Some(waker);
                Poll::Pending
            }
        };
        drop(inner);
        polled
    }
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

const FUTURES: u64 = 4;
const VALUES: u64 = 5;

fn scene<S: Strategy>() {
    let pool = ThreadPoolBuilder::new().num_threads(3).build_with::<S>().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let channels: Vec<_> = (0..FUTURES).map(|_| Arc::new(Channel::default())).collect();
    let handles: Vec<JoinHandle<u64>> = channels
        .iter()
        .map(|channel| {
            let (kept, channel) = (Counted(dropped.clone()), channel.clone());
            pool.spawn_future(async move {
                let _kept = kept;
                let mut sum = 0;
                for _ in 0..VALUES {
                    sum += poll_fn(|cx| channel.poll(cx)).await;
                    stanchion_machine::work(hint::entropy() % 3_000);
                }
                sum
            })
        })
        .collect();
    let senders: Vec<_> = (0..2)
        .map(|_| {
            let channels = channels.clone();
            thread::spawn(move || {
                for value in 1..=VALUES {
                    for channel in &channels {
                        stanchion_machine::work(hint::entropy() % 5_000);
                        channel.send(value);
                    }
                }
            })
        })
        .collect();
    let all = {
        let inner: Vec<_> = (0..3).map(|n| pool.spawn_future(async move { n })).collect();
        pool.spawn_future(async move {
            let mut sum = 0;
            for handle in inner {
                sum += handle.await?;
            }
            Ok(sum)
        })
    };
    stanchion_machine::work(hint::entropy() % 200_000);
    match hint::entropy() % 3 {
        0 => pool.shutdown_now(),
        1 => {
            handles[0].abort();
            drop(pool);
        }
        _ => {
            // What is ready, and what that wakes, is finished.
            pool.shutdown();
            assert!(all.is_finished());
        }
    }
    let inner: Result<Result<i32, Cancelled>, Cancelled> = all.join();
    assert!(matches!(inner, Ok(Ok(3)) | Ok(Err(Cancelled)) | Err(Cancelled)), "{inner:?}");
    for handle in handles {
        if let Ok(sum) = handle.join() {
            // At least 1, 1, 2, 2, 3; at most what one sender sends.
            assert!((9..=15).contains(&sum), "{sum}");
        }
    }
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert_eq!(dropped.load(Relaxed), FUTURES as usize);
    assert!(channels.iter().all(|channel| Arc::strong_count(channel) == 1), "a future is left");
}

/// The scene with many seeds, with slices that end in the middle of everything, on more and on
/// fewer processors than threads.
fn on_machines<S: Strategy>() {
    for seed in 0..60 {
        let mut machine = machines::modern(1 + seed as usize % 6);
        machine.scheduling.quantum = Time::nanos(4_000 + 1_237 * (seed % 8));
        let run = Simulation::new(machine).seed(seed).run(scene::<S>);
        if let Err(failure) = run {
            panic!("seed {seed}: {failure}");
        }
    }
}

#[test]
fn work_stealing() {
    on_machines::<WorkStealing>();
}

#[test]
fn idle_queue() {
    on_machines::<IdleQueue>();
}

#[test]
fn local_ready_queue() {
    on_machines::<LocalReadyQueue>();
}
