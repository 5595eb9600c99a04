//! Null Fork: makes, runs and joins a thread that does nothing.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use stanchion_activations::{Runtime, spawn};

use super::measure::{by, repeat};
use super::{LASTING, ROUNDS, cell, sizes};
use crate::cell::{Cell, Contestant, Figures};
use crate::race;
use crate::work::{in_processors, process_time, processors};
use crate::{Effort, Options, Report};

/// The number of threads that are forked before the first is joined.
const TOGETHER: [u64; 2] = [1, 100];

pub(crate) fn cells() -> Vec<Cell> {
    let of = |size: usize| {
        TOGETHER.map(|together| {
            let title = format!("fork, {together} at a time, {}", in_processors(size));
            cell(title, contestants(size, together))
        })
    };
    sizes().into_iter().flat_map(of).collect()
}

pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    race::contest("fork", cells(), ROUNDS, options, progress)
}

fn contestants(size: usize, together: u64) -> Vec<Contestant> {
    let ours =
        |activations| move |effort: Effort| ours(size, together, effort.time(LASTING), activations);
    let mut all = vec![
        Contestant::new("activations", ours(true)),
        Contestant::new("activations off", ours(false)),
        Contestant::peer("tokio spawn, multi_thread", move |effort| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            with_tokio(builder.worker_threads(size), together, effort.time(LASTING))
        }),
        Contestant::new("rayon scope, spawn", move |effort| {
            with_rayon(size, together, effort.time(LASTING))
        }),
        Contestant::peer("std threads", move |effort| threads(together, effort.time(LASTING))),
    ];
    if size == 1 {
        let tokio = Contestant::peer("tokio spawn, current_thread", move |effort| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            with_tokio(&mut builder, together, effort.time(LASTING))
        });
        all.insert(4, tokio);
    }
    // The workers of `may` are those of the whole process.
    if size == processors() {
        let may = move |effort: Effort| with_may(size, together, effort.time(LASTING));
        all.insert(2, Contestant::peer("may", may));
    }
    all
}

fn ours(size: usize, together: u64, lasting: Duration, activations: bool) -> Figures {
    let runtime = Runtime::builder().processors(size).activations(activations).build();
    runtime.expect("few processors").run(move || {
        let mut handles = Vec::with_capacity(together as usize);
        repeat(lasting, together, || {
            handles.extend((0..together).map(|number| spawn(move || black_box(number))));
            for handle in handles.drain(..) {
                handle.join().expect("it does nothing");
            }
        })
    })
}

fn with_may(size: usize, together: u64, lasting: Duration) -> Figures {
    may::config().set_workers(size);
    let body = move || {
        let mut handles = Vec::with_capacity(together as usize);
        repeat(lasting, together, || {
            // SAFETY: neither the closure nor its callees have thread-locals or a deep stack.
            let fork = |number| unsafe { may::coroutine::spawn(move || black_box(number)) };
            handles.extend((0..together).map(fork));
            for handle in handles.drain(..) {
                handle.join().expect("it does nothing");
            }
        })
    };
    // SAFETY: the closure only reads the clock.
    unsafe { may::coroutine::spawn(body) }.join().expect("it ends")
}

fn with_tokio(builder: &mut tokio::runtime::Builder, together: u64, lasting: Duration) -> Figures {
    let runtime = builder.build().expect("few threads");
    let measuring = runtime.spawn(async move {
        let mut handles = Vec::with_capacity(together as usize);
        // The function `repeat` cannot call futures.
        let (mut calls, cpu, begun) = (0, process_time(), Instant::now());
        while begun.elapsed() < lasting {
            for _ in 0..16 {
                handles.extend(
                    (0..together).map(|number| tokio::spawn(async move { black_box(number) })),
                );
                for handle in handles.drain(..) {
                    handle.await.expect("it does nothing");
                }
            }
            calls += 16;
        }
        by(begun, cpu, calls * together)
    });
    runtime.block_on(measuring).expect("it ends")
}

fn with_rayon(size: usize, together: u64, lasting: Duration) -> Figures {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(size).build().expect("few threads");
    pool.install(|| {
        repeat(lasting, together, || {
            rayon::scope(|scope| {
                for number in 0..together {
                    scope.spawn(move |_| {
                        black_box(number);
                    });
                }
            });
        })
    })
}

fn threads(together: u64, lasting: Duration) -> Figures {
    let mut handles = Vec::with_capacity(together as usize);
    let shared = Arc::new(());
    repeat(lasting, together, || {
        for _ in 0..together {
            let shared = shared.clone();
            handles.push(thread::spawn(move || drop(shared)));
        }
        for handle in handles.drain(..) {
            handle.join().expect("it does nothing");
        }
    })
}
