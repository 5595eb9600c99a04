//! Where the kernel's records are declined: the others go on all the same, some milliseconds later.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use stanchion_activations::{Builder, Runtime, Tier, blocking, sleep, yield_now};
use stanchion_machine::presence;

#[test]
fn threads_that_block_are_found_by_looking() {
    let _declined = presence::decline();
    for processors in 1..=2 {
        let runtime = Runtime::new(processors).unwrap();
        assert!(matches!(runtime.capabilities().tier, Tier::Heartbeats(_)));
        assert!(runtime.capabilities().to_string().contains("every few milliseconds"));
        let (ends, others): (Vec<_>, Vec<_>) = (0..6).map(|_| UnixStream::pair().unwrap()).unzip();
        let waiting: Vec<_> = others
            .into_iter()
            .map(|mut from| {
                runtime.spawn(move || {
                    let mut byte = [0];
                    from.read_exact(&mut byte).unwrap();
                    byte[0]
                })
            })
            .collect();
        // Behind those that block.
        let writes = runtime.spawn(move || {
            yield_now();
            for (number, mut end) in ends.into_iter().enumerate() {
                end.write_all(&[number as u8]).unwrap();
            }
        });
        writes.join().unwrap();
        let read: Vec<u8> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(read, [0, 1, 2, 3, 4, 5]);
        assert!(runtime.metrics().handoffs > 0);
    }
    let runtime = Runtime::new(1).unwrap();
    // A time comes while the one kernel thread is blocked.
    let (mut end, mut other) = UnixStream::pair().unwrap();
    let sleeper = move || {
        sleep(Duration::from_millis(3));
        end.write_all(&[1]).unwrap();
    };
    // SAFETY: it uses nothing of the kernel thread's.
    let sleeper = unsafe { Builder::new().on(&runtime).spawn_migratable(sleeper) };
    runtime.spawn(move || other.read_exact(&mut [0]).unwrap()).join().unwrap();
    sleeper.join().unwrap();
    let (sends, receives) = std::sync::mpsc::channel();
    let waits = runtime.spawn(move || blocking(|| receives.recv().unwrap()));
    runtime.spawn(move || sends.send(3).unwrap());
    assert_eq!(waits.join().unwrap(), 3);
}
