//! Linux: `/proc/self/task`, and the CPU clocks of threads.

use std::fs::File;
use std::io::Read as _;

use stanchion_machine::clock::monotonic;

use super::{Activity, BlockedIn, Reading};

/// A reading is tried again if it took longer: its parts would be of different moments.
const TORN_NS: u64 = 1_000_000;
/// The most tries of a reading. The last one counts, however long it took.
const TRIES: u32 = 3;

/// Returns the kernel's number of the calling thread.
pub(crate) fn this_thread() -> Option<u32> {
    // SAFETY: the call takes no arguments and touches no memory of this process.
    u32::try_from(unsafe { libc::gettid() }).ok()
}

/// Reads the counts of a thread. Returns `None` if it has ended, or if `/proc` is not there.
pub(crate) fn read(thread: u32) -> Option<Reading> {
    let mut tries = 1;
    loop {
        let began = monotonic();
        let clock_before = cpu_clock(thread);
        let state = state(&file(thread, "stat")?)?;
        let (by_scheduler, ready) = times(&file(thread, "schedstat")?)?;
        let clock = cpu_clock(thread);
        let at = monotonic();
        if at - began > TORN_NS && tries < TRIES {
            tries += 1;
            continue;
        }
        let activity = match state {
            'R' => match (clock_before, clock) {
                // Its clock moved while the files were read: it has a processor.
                (Some(before), Some(after)) if after == before => Activity::Ready,
                _ => Activity::Running,
            },
            'T' | 't' => Activity::Ready,
            _ => Activity::Blocked,
        };
        return Some(Reading { at, running: clock.unwrap_or(by_scheduler), ready, activity });
    }
}

/// Returns where a thread is blocked, if it still is.
pub(crate) fn blocked_in(thread: u32) -> BlockedIn {
    file(thread, "syscall").and_then(|text| call(&text)).unwrap_or(BlockedIn::Unknown)
}

/// Reads a file of a thread.
fn file(thread: u32, name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(512);
    File::open(format!("/proc/self/task/{thread}/{name}")).ok()?.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the time that a thread has run, in nanoseconds. Returns `None` if it has ended, or if a
/// filter forbids the call.
fn cpu_clock(thread: u32) -> Option<u64> {
    // The kernel's clock of one thread (`MAKE_THREAD_CPUCLOCK` with `CPUCLOCK_SCHED`).
    const ONE_THREAD: i32 = 4;
    const SCHEDULED: i32 = 2;
    let clock = (!i32::try_from(thread).ok()? << 3) | ONE_THREAD | SCHEDULED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the type asked for.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

/// Returns the letter of the state in `stat`. The name before it may have parentheses in it.
fn state(text: &str) -> Option<char> {
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Returns the times of `schedstat`: on a processor, and ready without one.
fn times(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Takes `syscall` apart. Returns `None` for a thread that is not blocked.
fn call(text: &str) -> Option<BlockedIn> {
    let number = text.split_ascii_whitespace().next()?.parse::<i64>().ok()?;
    Some(if number < 0 { BlockedIn::Kernel } else { BlockedIn::SystemCall(number) })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn files_are_taken_apart() {
        assert_eq!(state("36 (a) R (b) S 1 36 36"), Some('S'));
        assert_eq!(state("36 (cut"), None);
        assert_eq!(times("1267185 181823 4\n"), Some((1_267_185, 181_823)));
        assert_eq!(times("12"), None);
        assert_eq!(call("running\n"), None);
        assert_eq!(call("-1 0x7ffc 0x7efe\n"), Some(BlockedIn::Kernel));
        assert_eq!(call("0 0x3 0x7f10\n"), Some(BlockedIn::SystemCall(0)));
        assert_eq!(call(""), None);
    }

    #[test]
    fn this_thread_runs_and_its_time_grows() {
        let me = this_thread().unwrap();
        let first = read(me).unwrap();
        let second = read(me).unwrap();
        assert_eq!(first.activity, Activity::Running);
        assert!(second.running > first.running, "{first:?} {second:?}");
        assert!(second.at > first.at, "{first:?} {second:?}");
    }

    #[test]
    fn a_blocked_thread_is_found_in_its_call() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let sleeper = thread::spawn(move || {
            tell.send(this_thread().unwrap()).unwrap();
            // An error: the sender is gone.
            let _ = ended.recv();
        });
        let thread = told.recv().unwrap();
        while read(thread).unwrap().activity != Activity::Blocked {
            thread::yield_now();
        }
        let seen = blocked_in(thread);
        drop(end);
        sleeper.join().unwrap();
        assert_eq!(seen, BlockedIn::SystemCall(libc::SYS_futex));
        assert_eq!(read(u32::MAX), None);
    }
}
