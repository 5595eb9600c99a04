//! Threads that block in the kernel without saying so: the others go on. Each test ends only if
//! they do, because what blocks waits for what they do.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use stanchion_activations::{Builder, Runtime, Tier, blocking, current, park, spawn, yield_now};

/// A thread that blocks in the kernel until the other end is written to.
fn reads(mut from: UnixStream) -> u8 {
    let mut byte = [0];
    from.read_exact(&mut byte).unwrap();
    byte[0]
}

#[test]
fn one_processor_goes_on_when_its_thread_blocks() {
    let runtime = Runtime::new(1).unwrap();
    let (mut here, there) = UnixStream::pair().unwrap();
    let waits = runtime.spawn(move || reads(there));
    let writes = runtime.spawn(move || here.write_all(&[7]).unwrap());
    assert_eq!(waits.join().unwrap(), 7);
    writes.join().unwrap();
    assert!(matches!(runtime.capabilities().tier, Tier::Records | Tier::Heartbeats(_)));
}

#[test]
fn a_row_of_threads_each_of_which_waits_in_the_kernel_for_the_next() {
    const ROW: usize = 20;
    for processors in 1..=3 {
        let runtime = Runtime::new(processors).unwrap();
        let (first, mut before) = UnixStream::pair().unwrap();
        let mut row = vec![runtime.spawn(move || reads(first))];
        for _ in 1..ROW {
            let (mut behind, this) = (before, UnixStream::pair().unwrap());
            before = this.1;
            let own = this.0;
            row.push(runtime.spawn(move || {
                let byte = reads(own);
                behind.write_all(&[byte + 1]).unwrap();
                byte
            }));
        }
        let last = runtime.spawn(move || before.write_all(&[1]).unwrap());
        let read: Vec<u8> = row.into_iter().map(|thread| thread.join().unwrap()).collect();
        last.join().unwrap();
        assert_eq!(read, (1..=ROW as u8).rev().collect::<Vec<_>>());
    }
}

#[test]
fn begun_thread_stays_on_a_worker_that_lost_its_slot() {
    for processors in 1..=2 {
        let runtime = Runtime::new(processors).unwrap();
        let (mut here, there) = UnixStream::pair().unwrap();
        let waits = runtime.spawn(move || {
            let before = std::thread::current().id();
            let parked = spawn(|| {
                let began = std::thread::current().id();
                park();
                assert_eq!(std::thread::current().id(), began);
            });
            while parked.thread().id() == current().id() {}
            yield_now();
            let byte = reads(there);
            parked.thread().unpark();
            assert_eq!(std::thread::current().id(), before);
            parked.join().unwrap();
            assert_eq!(std::thread::current().id(), before);
            byte
        });
        let busy: Vec<_> = (0..100).map(|_| runtime.spawn(yield_now)).collect();
        let writes = runtime.spawn(move || here.write_all(&[9]).unwrap());
        assert_eq!(waits.join().unwrap(), 9);
        writes.join().unwrap();
        busy.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn more_block_than_there_may_be_kernel_threads() {
    let runtime = Runtime::builder().processors(1).spare_kernel_threads(3).build().unwrap();
    let threads: Vec<_> =
        (0..40).map(|_| runtime.spawn(|| std::thread::sleep(Duration::from_millis(2)))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let metrics = runtime.metrics();
    assert!(metrics.kernel_threads <= 4, "{metrics:?}");
    assert_eq!(metrics.spawned, 40);
}

#[test]
fn announced_block_needs_no_monitor() {
    let runtime = Runtime::builder().processors(1).activations(false).build().unwrap();
    assert_eq!(runtime.capabilities().tier, Tier::Off);
    let (sends, receives) = mpsc::channel();
    let waits = runtime.spawn(move || blocking(|| receives.recv().unwrap()));
    runtime.spawn(move || sends.send(5).unwrap()).join().unwrap();
    assert_eq!(waits.join().unwrap(), 5);
}

#[test]
fn dropping_a_runtime_waits_for_those_that_block() {
    let runtime = Runtime::new(2).unwrap();
    let (sends, receives) = mpsc::channel();
    for _ in 0..10 {
        let sends = sends.clone();
        runtime.spawn(move || {
            std::thread::sleep(Duration::from_millis(1));
            sends.send(()).unwrap();
        });
    }
    drop((runtime, sends));
    assert_eq!(receives.iter().count(), 10);
}

#[test]
fn trace_has_threads_and_upcalls() {
    let runtime = Runtime::builder().processors(1).trace(100).build().unwrap();
    let (mut here, there) = UnixStream::pair().unwrap();
    let waits = runtime.spawn(move || reads(there));
    let writes = runtime.spawn(move || here.write_all(&[7]).unwrap());
    waits.join().unwrap();
    writes.join().unwrap();
    Builder::new().name("the \"first\"").on(&runtime).spawn(|| ()).join().unwrap();
    for _ in 0..200 {
        runtime.run(|| ());
    }
    let trace = runtime.trace().unwrap();
    assert!(trace.dropped() > 0, "there were more than 100 events on one of the workers");
    let mut json = Vec::new();
    trace.write_chrome(&mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(json.contains(r#""name":"the \"first\" ("#), "{json}");
    assert!(json.contains("\"ph\":\"X\"") && json.contains("ProcessorAdded"), "{json}");
    assert_eq!(json.matches('{').count(), json.matches('}').count());
    assert!(Runtime::new(1).unwrap().trace().is_none());
}

/// Workers that come back while all others are blocked go on without waiting for a slot, and all
/// is run once.
#[test]
fn threads_that_block_often_and_briefly_all_end() {
    const THREADS: usize = 200;
    const TIMES: usize = 5;
    for (processors, spares) in [(1, 64), (2, 64), (2, 3), (2, 0)] {
        let runtime =
            Runtime::builder().processors(processors).spare_kernel_threads(spares).build().unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let done = done.clone();
                runtime.spawn(move || {
                    for time in 0..TIMES {
                        std::thread::sleep(Duration::from_micros(
                            ((number + time) % 4 * 30) as u64,
                        ));
                        yield_now();
                        done.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(done.load(Relaxed), THREADS * TIMES);
        let metrics = runtime.metrics();
        assert!(metrics.kernel_threads <= processors + spares);
        assert!(spares > 0 || metrics.returns_at_once == 0, "no kernel thread could sit there");
    }
}

/// The one that has the only slot is blocked, and waits for one that has lost it and comes back.
#[test]
fn one_that_comes_back_while_the_processor_is_idle_goes_on() {
    let runtime = Runtime::new(1).unwrap();
    if !matches!(runtime.capabilities().tier, Tier::Records) {
        eprintln!("without switch records no thread sees that the processor is idle");
        return;
    }
    let (mut to_first, first) = UnixStream::pair().unwrap();
    let (mut to_second, second) = UnixStream::pair().unwrap();
    let (says, hears) = mpsc::channel();
    let said = says.clone();
    let comes_back = runtime.spawn(move || {
        reads(first);
        // It finds that its slot is gone, and still has this thread to run.
        yield_now();
        to_second.write_all(&[1]).unwrap();
    });
    let blocks = runtime.spawn(move || {
        said.send(()).unwrap();
        reads(second)
    });
    // It has got the slot of the first, and will not give it back of itself.
    hears.recv().unwrap();
    drop(says);
    to_first.write_all(&[1]).unwrap();
    assert_eq!(blocks.join().unwrap(), 1);
    comes_back.join().unwrap();
}
