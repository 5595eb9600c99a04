//! The affinity mask of the calling thread, on Linux, whatever its length.
//!
//! `libc::cpu_set_t` ends at processor 1023 and the kernel refuses masks shorter than its own, so
//! the mask here grows until it is accepted.

use crate::topology::PinError;
use core::cell::RefCell;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

const BITS: usize = usize::BITS as usize;

std::thread_local! {
    /// The mask from before the calling thread was pinned, and how many pins there are.
    static BEFORE: RefCell<Option<(Mask, usize)>> = const { RefCell::new(None) };
}

/// A set of processors, as the kernel writes it.
#[derive(Clone, Debug)]
pub(crate) struct Mask(Vec<usize>);

impl Mask {
    /// The longest mask tried, in processors; the kernel's own limit is 8192 at the time of
    /// writing.
    const LONGEST: usize = 1 << 18;

    /// The processors the calling thread may run on, if the system tells.
    fn of_this_thread() -> Option<Self> {
        let mut words = 1024 / BITS;
        while words * BITS <= Self::LONGEST {
            let mut mask = vec![0_usize; words];
            // SAFETY: the kernel writes at most the length given, which is that of the vector.
            let result = unsafe {
                libc::sched_getaffinity(0, size_of_val(&*mask), mask.as_mut_ptr().cast())
            };
            if result == 0 {
                return Some(Self(mask));
            }
            if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
                return None;
            }
            words *= 2;
        }
        None
    }

    fn only(cpu: usize) -> Self {
        let mut mask = vec![0; cpu / BITS + 1];
        mask[cpu / BITS] = 1 << (cpu % BITS);
        Self(mask)
    }

    fn processors(&self) -> Vec<usize> {
        let bits = 0..self.0.len() * BITS;
        bits.filter(|cpu| self.0[cpu / BITS] >> (cpu % BITS) & 1 == 1).collect()
    }

    /// Makes it the mask of the calling thread.
    fn set(&self) -> std::io::Result<()> {
        // SAFETY: the kernel reads at most the length given, which is that of the vector.
        let result =
            unsafe { libc::sched_setaffinity(0, size_of_val(&*self.0), self.0.as_ptr().cast()) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

/// A mask on the stack, for waiters: they may wait for a lock that guards an allocator.
#[derive(Clone, Debug)]
pub(super) struct Fixed([usize; Self::WORDS]);

impl Fixed {
    /// For 8192 processors: the kernel's own limit at the time of writing.
    const WORDS: usize = 8192 / BITS;

    /// Returns the mask of the thread with that number, or of the caller if it is 0. `None` if the
    /// system refuses.
    pub(super) fn of(thread: libc::pid_t) -> Option<Self> {
        let mut mask = [0_usize; Self::WORDS];
        // SAFETY: the system writes at most the length given, which is that of the array.
        let result = unsafe {
            libc::sched_getaffinity(thread, size_of_val(&mask), mask.as_mut_ptr().cast())
        };
        (result == 0).then_some(Self(mask))
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the processors of both.
    pub(super) fn united(mut self, other: &Self) -> Self {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
        self
    }
}

pub(crate) fn processors() -> Vec<usize> {
    match Mask::of_this_thread().map(|mask| mask.processors()) {
        Some(processors) if !processors.is_empty() => processors,
        // Refused, as some sandboxes do: the standard library's count, numbered from 0.
        _ => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

pub(crate) fn pin(cpu: usize) -> Result<Mask, PinError> {
    let unsupported =
        |error: std::io::Error| PinError::Unsupported { cpu, reason: error.to_string() };
    let not_allowed = || PinError::NotAllowed { cpu, allowed: processors() };
    if cpu >= Mask::LONGEST {
        return Err(not_allowed());
    }
    let before =
        Mask::of_this_thread().ok_or_else(|| unsupported(std::io::Error::last_os_error()))?;
    // The kernel judges, not the mask: a thread started by a pinned one inherits its mask and may
    // leave it.
    Mask::only(cpu).set().map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => not_allowed(),
        _ => unsupported(error),
    })?;
    BEFORE.with(|outermost| {
        let mut outermost = outermost.borrow_mut();
        let (first, pins) = outermost.take().unwrap_or_else(|| (before.clone(), 0));
        *outermost = Some((first, pins + 1));
    });
    Ok(before)
}

/// The calling thread is not pinned any more: it gets the mask back that it had before.
pub(crate) fn unpin(before: &Mask) {
    restore(before);
    // A guard that is dropped with the thread's last locals has nothing to tell.
    let _ = BEFORE.try_with(|outermost| {
        let mut outermost = outermost.borrow_mut();
        *outermost =
            outermost.take().filter(|(_, pins)| *pins > 1).map(|(mask, pins)| (mask, pins - 1));
    });
}

/// Returns the calling thread's mask, from before it was pinned, if the system tells.
pub(crate) fn affinity() -> Option<Mask> {
    let before = BEFORE.try_with(|outermost| Some(outermost.borrow().as_ref()?.0.clone()));
    before.ok().flatten().or_else(Mask::of_this_thread)
}

pub(crate) fn processors_of(mask: &Mask) -> Vec<usize> {
    mask.processors()
}

pub(crate) fn restore(mask: &Mask) {
    // It was this thread's mask before. If its processors have been taken from the process since,
    // the thread stays where it is.
    let _ = mask.set();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_holds_what_it_is_given_beyond_1024_too() {
        for cpu in [0, 1, 63, 64, 1023, 1024, 5000] {
            assert_eq!(Mask::only(cpu).processors(), [cpu]);
        }
    }

    #[test]
    fn pinning_is_undone_in_order() {
        let all = processors();
        let last = *all.last().unwrap();
        let outer = crate::topology::pin(last).unwrap();
        assert_eq!(processors(), [last]);
        let inner = crate::topology::pin(last).unwrap();
        drop(inner);
        assert_eq!(processors(), [last], "as the outer guard left it");
        drop(outer);
        assert_eq!(processors(), all);
    }

    #[test]
    fn a_thread_started_by_a_pinned_one_may_be_pinned_elsewhere() {
        let all = processors();
        let _pinned = crate::topology::pin(all[0]).unwrap();
        let elsewhere = std::thread::spawn(move || {
            assert_eq!(processors(), [all[0]], "inherited");
            let last = *all.last().unwrap();
            let _pinned = crate::topology::pin(last).unwrap();
            assert_eq!(processors(), [last]);
        });
        elsewhere.join().unwrap();
    }

    #[test]
    fn a_processor_that_is_not_there_is_named() {
        for cpu in [8191, 1 << 20, usize::MAX] {
            let error = crate::topology::pin(cpu).unwrap_err();
            assert_eq!(error, PinError::NotAllowed { cpu, allowed: processors() });
            assert!(
                error.to_string().contains(&std::format!("processor {cpu} does not exist")),
                "{error}"
            );
        }
    }
}
