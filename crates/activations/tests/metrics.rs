//! What is timed: upcalls, hand-overs, and what seats lose to threads that block.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use stanchion_activations::{Runtime, Tier, Upcall, blocking, spawn, yield_now};

/// One processor, whose thread blocks in the kernel until one that is ready behind it has run.
fn one_block_with_work_behind_it(runtime: &Runtime) {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let waits = runtime.spawn(move || there.read_exact(&mut [0]).unwrap());
    let writes = runtime.spawn(move || here.write_all(&[1]).unwrap());
    waits.join().unwrap();
    writes.join().unwrap();
}

#[test]
fn what_a_block_costs_is_timed_from_its_switch_to_the_next_carrier() {
    let runtime = Runtime::builder().processors(1).trace(1_000).build().unwrap();
    one_block_with_work_behind_it(&runtime);
    let metrics = runtime.metrics();
    assert!(metrics.handovers > 0, "{metrics}");
    assert!(metrics.handover_latencies.count() > 0, "{metrics}");
    assert!(metrics.latency(Upcall::ProcessorAdded).count() > 0, "{metrics}");
    // It had to be patient before.
    assert!(metrics.seat_time_lost > Duration::from_micros(10), "{metrics}");
    if runtime.capabilities().tier == Tier::Records {
        assert!(metrics.latency(Upcall::Blocked).count() > 0, "{metrics}");
    }
    for upcall in Upcall::ALL {
        assert!(metrics.latency(upcall).count() <= metrics.upcalls(upcall), "{metrics}");
    }
    let mut json = Vec::new();
    runtime.trace().unwrap().write_chrome(&mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(json.contains("short of a carrier") && json.contains("latency_ns"), "{json}");
    assert!(metrics.to_string().contains("seat-time lost"), "{metrics}");
}

#[test]
fn a_seat_that_was_given_away_beforehand_is_short_for_a_wake_up() {
    let runtime = Runtime::builder().processors(1).activations(false).build().unwrap();
    let (sends, receives) = std::sync::mpsc::channel();
    let waits = runtime.spawn(move || blocking(|| receives.recv().unwrap()));
    runtime.spawn(move || sends.send(()).unwrap()).join().unwrap();
    waits.join().unwrap();
    let metrics = runtime.metrics();
    assert_eq!(metrics.upcalls(Upcall::Blocked), 0, "nobody looks: {metrics}");
    assert_eq!(metrics.latency(Upcall::Unblocked).quantile(0.5), None, "{metrics}");
    assert!(metrics.latency(Upcall::ProcessorAdded).count() > 0, "{metrics}");
}

#[test]
fn a_block_that_keeps_nobody_waiting_loses_nothing() {
    let runtime = Runtime::new(2).unwrap();
    runtime.run(|| (0..10).for_each(|_| std::thread::sleep(Duration::from_millis(1))));
    let metrics = runtime.metrics();
    assert_eq!(metrics.seat_time_lost, Duration::ZERO, "{metrics}");
    assert_eq!(metrics.handovers, 0, "{metrics}");
}

/// Nobody can stand in for it while something is ready: it is looked at again and again, and stays one block.
#[test]
fn a_block_is_told_once_however_often_it_is_looked_at() {
    let runtime = Arc::new(Runtime::builder().processors(2).spare_threads(0).build().unwrap());
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let blocks = runtime.spawn(move || there.read_exact(&mut [0]).unwrap());
    let looking = runtime.clone();
    let looks = runtime.spawn(move || {
        while looking.metrics().vain_handovers < 100 {
            // The next that it looks for is this one; and before it takes that, it looks at the other processor.
            drop(spawn(|| ()));
            yield_now();
        }
    });
    looks.join().unwrap();
    let metrics = runtime.metrics();
    here.write_all(&[1]).unwrap();
    blocks.join().unwrap();
    // It may block itself now and then, at a page fault or a lock.
    assert!(metrics.upcalls(Upcall::Blocked) < 50, "{metrics}");
}
