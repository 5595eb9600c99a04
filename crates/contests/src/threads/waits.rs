//! Threads that wait in user space, and threads that block, in one program. A thread that waits
//! must not wait for a thread that blocks. An operation is a whole program.
//!
//! On kernel threads and in tokio's `spawn_blocking`, the same functions of `sync` sleep in the
//! kernel.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_activations as activations;
use stanchion_activations::Runtime;
use stanchion_activations::sync::{Semaphore, channel};

use super::{ROUNDS, cell, measure};
use crate::cell::{Cell, Contestant, Figures};
use crate::race;
use crate::work::{in_processors, process_time, processors};
use crate::{Options, Report};

/// A means to run threads. Its clones run them in the same place.
trait Crew: Clone + Send + 'static {
    type Handle: Send;

    fn spawn(&self, body: impl FnOnce() + Send + 'static) -> Self::Handle;

    fn join(handle: Self::Handle);
}

impl Crew for Arc<Runtime> {
    type Handle = activations::JoinHandle<()>;

    fn spawn(&self, body: impl FnOnce() + Send + 'static) -> Self::Handle {
        Runtime::spawn(self, body)
    }

    fn join(handle: Self::Handle) {
        handle.join().expect("it ends");
    }
}

#[derive(Clone)]
struct KernelThreads;

impl Crew for KernelThreads {
    type Handle = thread::JoinHandle<()>;

    fn spawn(&self, body: impl FnOnce() + Send + 'static) -> Self::Handle {
        thread::spawn(body)
    }

    fn join(handle: Self::Handle) {
        handle.join().expect("it ends");
    }
}

impl Crew for Arc<tokio::runtime::Runtime> {
    type Handle = mpsc::Receiver<()>;

    fn spawn(&self, body: impl FnOnce() + Send + 'static) -> Self::Handle {
        let (ends, ended) = mpsc::channel();
        drop(self.spawn_blocking(move || {
            body();
            ends.send(()).expect("it is awaited");
        }));
        ended
    }

    fn join(handle: Self::Handle) {
        handle.recv().expect("it ends");
    }
}

fn all<C: Crew>(handles: Vec<C::Handle>) {
    handles.into_iter().for_each(C::join);
}

/// Runs 256 threads. At most 16 of them at a time may block for 5 ms.
fn permits<C: Crew>(crew: &C) {
    let permits = Arc::new(Semaphore::new(16));
    let spawn = |_| {
        let permits = permits.clone();
        crew.spawn(move || {
            let _permit = permits.acquire();
            thread::sleep(Duration::from_millis(5));
        })
    };
    all::<C>((0..256).map(spawn).collect());
}

/// Runs 20 threads that sleep in user space for 5 ms, then block for 20 ms.
fn sleepers<C: Crew>(crew: &C) {
    let spawn = |_| {
        crew.spawn(|| {
            activations::sleep(Duration::from_millis(5));
            thread::sleep(Duration::from_millis(20));
        })
    };
    all::<C>((0..20).map(spawn).collect());
}

/// Runs 40 threads that wait at a channel. Each is sent something while 20 other threads read from
/// pipes that are silent until then.
fn sessions<C: Crew>(crew: &C) {
    let (asks, asked) = channel::bounded(0);
    let (answers, answered) = mpsc::channel();
    let session = |_| {
        let (asked, answers) = (asked.clone(), answers.clone());
        crew.spawn(move || {
            answers.send(asked.recv().expect("it is sent one")).expect("it is awaited");
        })
    };
    let sessions: Vec<_> = (0..40).map(session).collect();
    let pairs = (0..20).map(|_| UnixStream::pair().expect("descriptors"));
    let (ends, others): (Vec<_>, Vec<_>) = pairs.unzip();
    let reads = |mut from: UnixStream| {
        crew.spawn(move || from.read_exact(&mut [0]).expect("it is written to"))
    };
    let readers = others.into_iter().map(reads).collect();
    (0..40).for_each(|number| asks.send(number).expect("they wait"));
    assert_eq!(answered.iter().take(40).count(), 40);
    ends.into_iter().for_each(|mut end| end.write_all(&[1]).expect("it is read"));
    all::<C>(readers);
    all::<C>(sessions);
}

/// Visits a page of a crawler: blocks for 2 ms with one of 8 permits, then visits the page's four
/// links. There are 341 pages.
fn visit<C: Crew>(crew: &C, permits: &Arc<Semaphore>, depth: usize) {
    let permit = permits.acquire();
    thread::sleep(Duration::from_millis(2));
    drop(permit);
    let links = if depth == 4 { 0 } else { 4 };
    let spawn = |_| {
        let (crew, permits) = (crew.clone(), permits.clone());
        crew.clone().spawn(move || visit(&crew, &permits, depth + 1))
    };
    all::<C>((0..links).map(spawn).collect());
}

fn crawler<C: Crew>(crew: &C) {
    let permits = Arc::new(Semaphore::new(8));
    let root = crew.clone();
    C::join(crew.spawn(move || visit(&root, &permits, 0)));
}

/// Serves 500 connections, each by a thread that blocks until it has a byte to send back. A client
/// asks all of them, three times.
fn connections<C: Crew>(crew: &C) {
    let pairs = (0..500).map(|_| UnixStream::pair().expect("descriptors"));
    let (mut clients, servers): (Vec<_>, Vec<_>) = pairs.unzip();
    let serve = |mut connection: UnixStream| {
        crew.spawn(move || {
            let mut byte = [0];
            while connection.read(&mut byte).expect("it is open") == 1 {
                connection.write_all(&byte).expect("it is read");
            }
        })
    };
    let threads = servers.into_iter().map(serve).collect();
    for _ in 0..3 {
        for client in &mut clients {
            client.write_all(&[1]).expect("it is read");
        }
        for client in &mut clients {
            client.read_exact(&mut [0]).expect("it is answered");
        }
    }
    drop(clients);
    all::<C>(threads);
}

fn timed<C: Crew>(crew: &C, program: fn(&C)) -> Figures {
    let (cpu, begun) = (process_time(), Instant::now());
    program(crew);
    measure::by(begun, cpu, 1)
}

fn ours(size: usize, program: fn(&Arc<Runtime>)) -> Figures {
    timed(&Arc::new(Runtime::new(size).expect("few processors")), program)
}

fn with_tokio(size: usize, program: fn(&Arc<tokio::runtime::Runtime>)) -> Figures {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(size).enable_all().build().expect("few threads");
    timed(&Arc::new(runtime), program)
}

type Programs = (fn(&Arc<Runtime>), fn(&KernelThreads), fn(&Arc<tokio::runtime::Runtime>));

/// Returns a cell for each program, on all processors that this process may use: `taskset -c 0` for
/// one.
pub(crate) fn cells() -> Vec<Cell> {
    let size = processors();
    let programs: [(&str, Programs); 5] = [
        ("permits", (permits, permits, permits)),
        ("sleepers", (sleepers, sleepers, sleepers)),
        ("sessions", (sessions, sessions, sessions)),
        ("crawler", (crawler, crawler, crawler)),
        ("connections", (connections, connections, connections)),
    ];
    let of = |(name, (own, kernel, tokio)): (&str, Programs)| {
        let contestants = vec![
            Contestant::new("activations", move |_| ours(size, own)),
            Contestant::peer("std threads", move |_| timed(&KernelThreads, kernel)),
            Contestant::peer("tokio spawn_blocking", move |_| with_tokio(size, tokio)),
        ];
        cell(format!("waits, {name}, {}", in_processors(size)), contestants)
    };
    programs.map(of).into()
}

pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    race::contest("waits", cells(), ROUNDS, options, progress)
}
