//! Asks a thread's CPU clock whether the thread runs: the clock moves while the thread is on a
//! processor, and stands still otherwise.

/// The time between the two readings, in ns: more than the clock's own unit, and too short for a
/// caller to mind.
const GAP_NS: u64 = 2_000;

/// Returns whether thread `tid` of this process is on a processor; `None` if there is no such
/// thread or its clock may not be read.
pub(super) fn moves(tid: u32) -> Option<bool> {
    let before = read(tid)?;
    let gap = crate::clock::Span::from_now(GAP_NS);
    while !gap.is_over() {
        crate::backend::spin_loop();
    }
    Some(read(tid)? > before)
}

/// The thread's processor time so far, in ns.
fn read(tid: u32) -> Option<u64> {
    /// Of one thread (4), by the scheduler's account (2): see `clock_getcpuclockid` in the kernel's
    /// posix-cpu-timers.
    const THREAD_SCHEDULED: i32 = 6;
    // Beyond the largest number a thread can have, the shift would name some other clock.
    const NUMBERS_END: u32 = 1 << 22;
    if tid > NUMBERS_END {
        return None;
    }
    let clock = (!(tid as i32) << 3) | THREAD_SCHEDULED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the type asked for; a clock that does not exist is an
    // error.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_runs_and_nobody_does_not() {
        // SAFETY: a question without pointers.
        let me = unsafe { libc::gettid() } as u32;
        assert_eq!(moves(me), Some(true));
        assert_eq!(moves(1 << 22), None);
        assert_eq!(moves(i32::MAX as u32), None);
        assert_eq!(moves(u32::MAX), None);
    }
}
