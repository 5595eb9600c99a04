//! Null Fork: makes, runs and joins a thread that does nothing.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use stanchion_activations::{Runtime, spawn};

use crate::contest::{self, Contestant};
use crate::measure::{Figures, processors, repeat};
use crate::options::Options;

/// The number of threads that are forked before the first is joined.
const TOGETHER: [u64; 2] = [1, 100];

pub(crate) fn run(options: &Options) {
    let mut sizes = vec![1, processors()];
    sizes.dedup();
    for size in sizes {
        for together in TOGETHER {
            let plural = if size == 1 { "" } else { "s" };
            let cell = format!("fork: {together} at a time, {size} processor{plural}");
            contest::nanos(&cell, contestants(size, together, options.lasting()), options);
        }
    }
}

fn contestants(size: usize, together: u64, lasting: Duration) -> Vec<Contestant<'static>> {
    let mut all = vec![
        Contestant::new("activations", move || ours(size, together, lasting, true)),
        Contestant::new("activations off", move || ours(size, together, lasting, false)),
        Contestant::new("tokio spawn, multi_thread (peer)", move || {
            with_tokio(
                tokio::runtime::Builder::new_multi_thread().worker_threads(size),
                together,
                lasting,
            )
        }),
        Contestant::new("rayon scope, spawn", move || with_rayon(size, together, lasting)),
        Contestant::new("std threads (peer)", move || threads(together, lasting)),
    ];
    if size == 1 {
        let tokio = Contestant::new("tokio spawn, current_thread (peer)", move || {
            with_tokio(&mut tokio::runtime::Builder::new_current_thread(), together, lasting)
        });
        all.insert(4, tokio);
    }
    // The workers of `may` are those of the whole process.
    if size == processors() {
        all.insert(2, Contestant::new("may (peer)", move || with_may(size, together, lasting)));
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
        let (mut calls, cpu, begun) =
            (0, crate::measure::process_time(), std::time::Instant::now());
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
        crate::measure::by(begun, cpu, calls * together)
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
