//! Bringing another thread of this process to the caller's processor, by its affinity.
//!
//! The masks lie on the stack: the caller may hold a lock that the allocator needs.

use crate::presence::switches::real::wiped;
use core::sync::atomic::Ordering;

/// Words of a mask, for 8192 processors: the kernel's own limit at the time of writing.
const WORDS: usize = 8192 / usize::BITS as usize;
const BITS: usize = usize::BITS as usize;

/// A thread, and its affinity of before.
pub(crate) struct Pulled {
    /// The kernel's number of the thread.
    tid: i32,
    /// Its mask before it was pulled.
    before: [usize; WORDS],
    /// The number of bytes of it that the kernel wrote.
    bytes: usize,
}

impl core::fmt::Debug for Pulled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pulled").field("tid", &self.tid).finish_non_exhaustive()
    }
}

pub(crate) fn pull(index: usize) -> Option<Pulled> {
    let slot = wiped::existing()?.slots.get(index)?;
    // Relaxed: the caller knows that the thread stays registered.
    let tid = slot.tid.load(Ordering::Relaxed) as i32;
    let here = crate::backend::topology::current().filter(|&cpu| cpu < WORDS * BITS)?;
    if tid == 0 {
        return None;
    }
    let mut before = [0_usize; WORDS];
    // SAFETY: the kernel writes at most the length given, which is that of the array.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&before), before.as_mut_ptr())
    };
    let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes > 0)?;
    let mut only = [0_usize; WORDS];
    only[here / BITS] = 1 << (here % BITS);
    set(tid, &only, bytes).then_some(Pulled { tid, before, bytes })
}

pub(crate) fn put_back(pulled: &Pulled) {
    // Its own affinity of before. If those processors have been taken from the process since, the
    // thread stays where it is.
    let _ = set(pulled.tid, &pulled.before, pulled.bytes);
}

fn set(tid: i32, mask: &[usize; WORDS], bytes: usize) -> bool {
    // SAFETY: the kernel reads `bytes` bytes, at most what it once wrote of such an array.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, bytes, mask.as_ptr()) == 0 }
}

#[cfg(test)]
mod tests {
    use crate::{presence, thread, topology};
    use std::sync::mpsc;

    #[test]
    fn a_thread_is_brought_here_and_goes_back() {
        let all = topology::processors();
        let (first, last) = (all[0], all[all.len() - 1]);
        let (told, tells) = mpsc::channel();
        let (go, goes) = mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            let pinned = topology::pin(first).unwrap();
            let registered = presence::register().unwrap();
            told.send((registered.index(), topology::processors())).unwrap();
            while goes.recv().is_ok() {
                told.send((registered.index(), topology::processors())).unwrap();
            }
            drop(pinned);
        });
        let (index, before) = tells.recv().unwrap();
        assert_eq!(before, [first]);
        let pinned = topology::pin(last).unwrap();
        let pulled = presence::pull(index).expect("a registered thread of this process");
        go.send(()).unwrap();
        assert_eq!(tells.recv().unwrap().1, [last], "brought here");
        drop(pulled);
        go.send(()).unwrap();
        assert_eq!(tells.recv().unwrap().1, [first], "its own affinity again");
        drop(pinned);
        drop(go);
        other.join().unwrap();
    }

    #[test]
    fn nobody_is_not_pulled() {
        assert!(presence::pull(thread::INDICES).is_none());
        assert!(presence::pull(thread::INDICES - 1).is_none());
    }
}
