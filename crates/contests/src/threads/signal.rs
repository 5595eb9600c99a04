//! Signal-Wait: two threads that wake each other in turn. In one operation, a thread wakes the
//! other and waits until it is woken.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_activations as activations;
use stanchion_activations::Runtime;
use tokio::sync::Notify;

use super::{LASTING, ROUNDS, cell, measure, sizes};
use crate::cell::{Cell, Contestant, Figures};
use crate::race;
use crate::work::{in_processors, process_time, processors};
use crate::{Effort, Options, Report};

/// The turn of the thread that looks at the clock.
const LEADS: u32 = 0;
/// The turn of the other thread.
const FOLLOWS: u32 = 1;
/// The end of the run.
const OVER: u32 = 2;

/// The number of rounds between two looks at the clock.
const BATCH: u64 = 64;

pub(crate) fn cells() -> Vec<Cell> {
    let of = |size| cell(format!("signal, {}", in_processors(size)), contestants(size));
    sizes().into_iter().map(of).collect()
}

pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    race::contest("signal", cells(), ROUNDS, options, progress)
}

fn contestants(size: usize) -> Vec<Contestant> {
    let ours = |activations| move |effort: Effort| ours(size, effort.time(LASTING), activations);
    let mut all = vec![
        Contestant::new("activations", ours(true)),
        Contestant::new("activations off", ours(false)),
        Contestant::peer("tokio Notify, multi_thread", move |effort| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            with_tokio(builder.worker_threads(size), effort.time(LASTING))
        }),
        Contestant::peer("std threads, park", |effort| threads(effort.time(LASTING))),
        Contestant::new("kernel threads, ours", |effort| kernel(effort.time(LASTING))),
    ];
    if size == 1 {
        let tokio = Contestant::peer("tokio Notify, current_thread", |effort| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            with_tokio(&mut builder, effort.time(LASTING))
        });
        all.insert(3, tokio);
    }
    if size == processors() {
        let may = move |effort: Effort| with_may(size, effort.time(LASTING));
        all.insert(2, Contestant::peer("may, park", may));
    }
    all
}

/// Runs the thread that looks at the clock: wakes the other thread, waits for it, and so on.
fn lead(turn: &AtomicU32, lasting: Duration, wake: impl Fn(), wait: impl Fn()) -> Figures {
    let (mut rounds, cpu, begun) = (0, process_time(), Instant::now());
    while begun.elapsed() < lasting {
        for _ in 0..BATCH {
            turn.store(FOLLOWS, Release);
            wake();
            while turn.load(Acquire) != LEADS {
                wait();
            }
        }
        rounds += BATCH;
    }
    let figures = measure::by(begun, cpu, 2 * rounds);
    turn.store(OVER, Release);
    wake();
    figures
}

/// Runs the other thread.
fn follow(turn: &AtomicU32, wake: impl Fn(), wait: impl Fn()) {
    loop {
        match turn.load(Acquire) {
            LEADS => wait(),
            FOLLOWS => {
                turn.store(LEADS, Release);
                wake();
            }
            _ => return,
        }
    }
}

fn ours(size: usize, lasting: Duration, activations: bool) -> Figures {
    let runtime = Runtime::builder().processors(size).activations(activations).build();
    runtime.expect("few processors").run(move || {
        let (turn, leader) = (Arc::new(AtomicU32::new(LEADS)), activations::current());
        let shared = turn.clone();
        let other = activations::spawn(move || {
            follow(&shared, || leader.unpark(), activations::park);
        });
        let follower = other.thread().clone();
        let figures = lead(&turn, lasting, || follower.unpark(), activations::park);
        other.join().expect("it ends");
        figures
    })
}

/// Kernel threads with the same functions, outside of any runtime.
fn kernel(lasting: Duration) -> Figures {
    let (turn, leader) = (AtomicU32::new(LEADS), activations::current());
    let (turn, leader) = (&turn, &leader);
    thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        scope.spawn(move || {
            tell.send(activations::current()).expect("the other thread waits");
            follow(turn, || leader.unpark(), activations::park);
        });
        let follower = told.recv().expect("it says so first");
        lead(turn, lasting, || follower.unpark(), activations::park)
    })
}

fn threads(lasting: Duration) -> Figures {
    let (turn, leader) = (AtomicU32::new(LEADS), thread::current());
    let (turn, leader) = (&turn, &leader);
    thread::scope(|scope| {
        let other = scope.spawn(move || follow(turn, || leader.unpark(), thread::park));
        lead(turn, lasting, || other.thread().unpark(), thread::park)
    })
}

fn with_may(size: usize, lasting: Duration) -> Figures {
    may::config().set_workers(size);
    let body = move || {
        let turn = Arc::new(AtomicU32::new(LEADS));
        let (shared, leader) = (turn.clone(), may::coroutine::current());
        let follower = move || follow(&shared, || leader.unpark(), may::coroutine::park);
        // SAFETY: neither the closure nor its callees have thread-locals or a deep stack.
        let other = unsafe { may::coroutine::spawn(follower) };
        let figures = lead(&turn, lasting, || other.coroutine().unpark(), may::coroutine::park);
        other.join().expect("it ends");
        figures
    };
    // SAFETY: the closure only reads the clock.
    unsafe { may::coroutine::spawn(body) }.join().expect("it ends")
}

fn with_tokio(builder: &mut tokio::runtime::Builder, lasting: Duration) -> Figures {
    let runtime = builder.build().expect("few threads");
    let (one, other) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let leads = {
        let (one, other) = (one.clone(), other.clone());
        runtime.spawn(async move {
            let (mut rounds, cpu, begun) = (0, process_time(), Instant::now());
            while begun.elapsed() < lasting {
                for _ in 0..BATCH {
                    other.notify_one();
                    one.notified().await;
                }
                rounds += BATCH;
            }
            measure::by(begun, cpu, 2 * rounds)
        })
    };
    let follows = runtime.spawn(async move {
        loop {
            other.notified().await;
            one.notify_one();
        }
    });
    let figures = runtime.block_on(leads).expect("it ends");
    follows.abort();
    figures
}
