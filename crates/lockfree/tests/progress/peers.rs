//! Structures of other crates, and structures that are wrong on purpose: the test must find them
//! out.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::structures::{Case, Subject};
use stanchion_lockfree::Progress;

macro_rules! peer {
    ($name:literal, $progress:ident, $type:ty = $new:expr; |$peer:ident, $value:ident| $put:expr; $take:expr; $look:expr) => {{
        struct Peer($type);

        impl Subject for Peer {
            fn put(&self, $value: u64) -> bool {
                let $peer = &self.0;
                let _ = $peer;
                $put
            }
            fn take(&self) -> Option<u64> {
                let $peer = &self.0;
                let _ = $peer;
                $take
            }
            fn look(&self) -> bool {
                let $peer = &self.0;
                let _ = $peer;
                $look
            }
        }

        Case { name: $name, progress: Progress::$progress, make: || Arc::new(Peer($new)) }
    }};
}

/// Other people's structures, with what we expect of them.
pub(crate) fn all() -> Vec<Case> {
    vec![
        peer!("crossbeam_queue::SegQueue", Blocking, crossbeam_queue::SegQueue<u64> = crossbeam_queue::SegQueue::new();
            |peer, value| { peer.push(value); true }; peer.pop(); peer.is_empty()),
        peer!("crossbeam_queue::ArrayQueue", Blocking, crossbeam_queue::ArrayQueue<u64> = crossbeam_queue::ArrayQueue::new(4);
            |peer, value| peer.push(value).is_ok(); peer.pop(); peer.is_empty()),
        peer!("concurrent_queue, unbounded", Blocking,
            concurrent_queue::ConcurrentQueue<u64> = concurrent_queue::ConcurrentQueue::unbounded();
            |peer, value| peer.push(value).is_ok(); peer.pop().ok(); peer.is_empty()),
        peer!("Mutex<VecDeque>", Blocking, Mutex<VecDeque<u64>> = Mutex::new(VecDeque::new());
            |peer, value| { peer.lock().unwrap().push_back(value); true };
            peer.lock().unwrap().pop_front(); peer.lock().unwrap().is_empty()),
    ]
}

/// Structures that are made to be caught, or not to be.
pub(crate) fn toys() -> Vec<Case> {
    vec![
        peer!("toy: a gate that is shut for one instruction", Blocking, AtomicU64 = AtomicU64::new(0);
            |gate, _value| {
                while gate.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
                    core::hint::spin_loop();
                }
                gate.store(0, Ordering::Release);
                true
            };
            None; gate.load(Ordering::Relaxed) == 0),
        peer!("toy: a gate that waits asleep", Blocking, AtomicU64 = AtomicU64::new(0);
            |gate, _value| {
                while gate.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                gate.store(0, Ordering::Release);
                true
            };
            None; gate.load(Ordering::Relaxed) == 0),
        peer!("toy: a fetch-and-add", WaitFree, AtomicU64 = AtomicU64::new(0);
            |count, value| { count.fetch_add(value, Ordering::Relaxed); true };
            None; count.load(Ordering::Relaxed) == 0),
        peer!("toy: a compare-exchange loop", LockFree, AtomicU64 = AtomicU64::new(0);
            |count, value| {
                let mut seen = count.load(Ordering::Relaxed);
                while let Err(now) =
                    count.compare_exchange(seen, seen + value, Ordering::Relaxed, Ordering::Relaxed)
                {
                    seen = now;
                }
                true
            };
            None; count.load(Ordering::Relaxed) == 0),
    ]
}
