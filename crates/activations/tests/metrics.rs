//! The times of upcalls and of hand-offs, and the processor time that is lost to blocks.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stanchion_activations::{Runtime, Tier, Upcall, blocking, spawn, yield_now};

/// On one processor, a thread blocks in the kernel until one that is ready behind it has run.
fn one_block_with_work_behind_it(runtime: &Runtime) {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let waits = runtime.spawn(move || there.read_exact(&mut [0]).unwrap());
    let writes = runtime.spawn(move || here.write_all(&[1]).unwrap());
    waits.join().unwrap();
    writes.join().unwrap();
}

#[test]
fn block_is_timed_from_its_switch_to_the_next_worker() {
    let runtime = Runtime::builder().processors(1).trace(1_000).build().unwrap();
    one_block_with_work_behind_it(&runtime);
    let metrics = runtime.metrics();
    assert!(metrics.handoffs > 0, "{metrics}");
    assert!(metrics.handoff_latencies.count() > 0, "{metrics}");
    assert!(metrics.latency(Upcall::ProcessorAdded).count() > 0, "{metrics}");
    // It had to be patient before.
    assert!(metrics.processor_time_lost > Duration::from_micros(10), "{metrics}");
    if runtime.capabilities().tier == Tier::Records {
        assert!(metrics.latency(Upcall::Blocked).count() > 0, "{metrics}");
    }
    for upcall in Upcall::ALL {
        assert!(metrics.latency(upcall).count() <= metrics.upcalls(upcall), "{metrics}");
    }
    let mut json = Vec::new();
    runtime.trace().unwrap().write_chrome(&mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(json.contains("no worker") && json.contains("latency_ns"), "{json}");
    assert!(metrics.to_string().contains("processor time lost"), "{metrics}");
}

#[test]
fn slot_given_away_before_a_block_loses_a_wake_up() {
    let runtime = Runtime::builder().processors(1).activations(false).build().unwrap();
    let (sends, receives) = std::sync::mpsc::channel();
    let waits = runtime.spawn(move || blocking(|| receives.recv().unwrap()));
    runtime.spawn(move || sends.send(()).unwrap()).join().unwrap();
    waits.join().unwrap();
    let metrics = runtime.metrics();
    assert_eq!(metrics.upcalls(Upcall::Blocked), 0, "no thread looks: {metrics}");
    assert_eq!(metrics.latency(Upcall::Unblocked).quantile(0.5), None, "{metrics}");
    assert!(metrics.latency(Upcall::ProcessorAdded).count() > 0, "{metrics}");
}

#[test]
fn block_without_ready_threads_loses_no_time() {
    let runtime = Runtime::new(2).unwrap();
    runtime.run(|| (0..10).for_each(|_| std::thread::sleep(Duration::from_millis(1))));
    let metrics = runtime.metrics();
    assert_eq!(metrics.processor_time_lost, Duration::ZERO, "{metrics}");
    assert_eq!(metrics.handoffs, 0, "{metrics}");
}

/// No kernel thread can stand in for it while something is ready: it is looked at again and again,
/// and stays one block.
#[test]
fn a_block_counts_once_however_often_it_is_looked_at() {
    let runtime = Runtime::builder().processors(2).spare_kernel_threads(0).build().unwrap();
    let runtime = Arc::new(runtime);
    let counts = Arc::downgrade(&runtime);
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let blocks = runtime.spawn(move || there.read_exact(&mut [0]).unwrap());
    let looks = runtime.spawn(move || {
        let is_found = || counts.upgrade().is_none_or(|it| it.metrics().blocks_without_spare > 0);
        // Beside other programs it may take longer until the block is found.
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(100) || !is_found() {
            // The next that it looks for is this one; and before it takes that, it looks at the
            // other processor.
            drop(spawn(|| ()));
            yield_now();
        }
    });
    looks.join().unwrap();
    let metrics = runtime.metrics();
    here.write_all(&[1]).unwrap();
    blocks.join().unwrap();
    // The other kernel thread may block itself now and then, at a page fault or a lock.
    assert!(metrics.upcalls(Upcall::Blocked) < 50, "{metrics}");
    assert!((1..50).contains(&metrics.blocks_without_spare), "{metrics}");
    assert_eq!(metrics.handoffs, 0, "{metrics}");
}

#[test]
fn no_block_counts_as_without_a_spare_while_there_are_spares() {
    let runtime = Runtime::builder().processors(1).build().unwrap();
    one_block_with_work_behind_it(&runtime);
    assert_eq!(runtime.metrics().blocks_without_spare, 0);
}

/// With many kernel threads that block at a time, each processor is still lost once only.
#[test]
fn no_more_processor_time_is_lost_than_there_was() {
    for processors in [1, 2] {
        let started = Instant::now();
        // Fewer kernel threads than block: nearly all of them are blocked while others are ready.
        let builder = Runtime::builder().processors(processors).spare_kernel_threads(16);
        let runtime = builder.build().unwrap();
        let block = || {
            for _ in 0..3 {
                std::thread::sleep(Duration::from_millis(5));
                yield_now();
            }
        };
        let threads: Vec<_> = (0..200).map(|_| runtime.spawn(block)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let metrics = runtime.metrics();
        let most = started.elapsed() * processors as u32;
        assert!(metrics.processor_time_lost <= most, "of {most:?} on {processors}: {metrics}");
    }
}

#[test]
fn spawned_ended_and_ready_threads_are_as_many_as_there_are() {
    let runtime = Runtime::builder().processors(1).activations(false).build().unwrap();
    let runtime = Arc::new(runtime);
    let inside = runtime.clone();
    runtime.run(move || {
        let others: Vec<_> = (0..3).map(|_| spawn(|| ())).collect();
        let metrics = inside.metrics();
        assert_eq!((metrics.spawned, metrics.ended, metrics.ready), (4, 0, 3), "{metrics}");
        others.into_iter().for_each(|other| other.join().unwrap());
        let metrics = inside.metrics();
        assert_eq!((metrics.spawned, metrics.ended, metrics.ready), (4, 3, 0), "{metrics}");
        assert_eq!((metrics.processors, metrics.kernel_threads), (1, 1), "{metrics}");
        assert_eq!(metrics.waiting_kernel_threads, 0, "{metrics}");
    });
}

#[test]
fn a_kernel_thread_that_lost_its_processor_and_wants_one_is_counted() {
    let runtime = Arc::new(Runtime::builder().processors(1).activations(false).build().unwrap());
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let back = runtime.spawn(move || {
        blocking(|| there.read_exact(&mut [0]).unwrap());
        yield_now();
    });
    let inside = runtime.clone();
    let keeps = runtime.spawn(move || {
        here.write_all(&[1]).unwrap();
        // Without a scheduling point, so that it keeps the only processor.
        while inside.metrics().waiting_kernel_threads == 0 {
            std::thread::yield_now();
        }
        inside.metrics()
    });
    let metrics = keeps.join().unwrap();
    back.join().unwrap();
    assert_eq!(metrics.waiting_kernel_threads, 1, "{metrics}");
    assert_eq!(metrics.kernel_threads, 2, "{metrics}");
    assert_eq!(metrics.handoffs, 1, "it was said beforehand: {metrics}");
}

#[test]
fn a_thread_back_from_a_block_goes_on_at_once_where_a_processor_is_idle() {
    let runtime = Runtime::new(2).unwrap();
    if runtime.capabilities().tier != Tier::Records {
        return;
    }
    // While both processors are lost to blocks, others run there; those that are back find them
    // blocked as well.
    for _ in 0..200 {
        let threads: Vec<_> = (0..16)
            .map(|_| {
                runtime.spawn(|| {
                    (0..10).for_each(|_| {
                        std::thread::sleep(Duration::from_micros(100));
                        yield_now();
                    });
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        if runtime.metrics().returns_at_once > 0 {
            return;
        }
    }
    panic!("{}", runtime.metrics());
}
