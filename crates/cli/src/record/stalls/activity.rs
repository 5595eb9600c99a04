//! The activity of a thread: it runs, waits for a processor, or is blocked.

use std::collections::BTreeMap;

use crate::watch::calls;
use crate::watch::procfs::{Call, Process, Times};

/// The system calls in which a thread waits that the shim sees.
pub(super) const WAITS: [&str; 4] = ["futex", "nanosleep", "clock_nanosleep", "restart_syscall"];

/// Returns the time on the clock of the waits.
pub(super) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

/// Returns the times of threads, as far as the kernel tells them.
pub(super) fn sample(
    process: &Process,
    threads: impl Iterator<Item = u32>,
) -> BTreeMap<u32, Option<Times>> {
    threads.map(|thread| (thread, process.times(thread).ok())).collect()
}

/// Returns words on what threads have done since a sample. It must be some ticks old.
pub(super) fn since(
    process: &Process,
    before: &BTreeMap<u32, Option<Times>>,
) -> BTreeMap<u32, String> {
    let has_our_calls = process.has_our_calls();
    let mut found = BTreeMap::new();
    for (&thread, times) in before {
        let Ok(stat) = process.stat(thread) else {
            found.insert(thread, "it has ended".to_owned());
            continue;
        };
        let words = match stat.state {
            'R' => runs(*times, process.times(thread).ok()).to_owned(),
            'Z' | 'X' => "it has ended".to_owned(),
            'T' | 't' => "stopped by a signal or a debugger".to_owned(),
            _ => blocked(process, thread, has_our_calls),
        };
        found.insert(thread, words);
    }
    found
}

/// Tells a thread with a processor from one without.
fn runs(before: Option<Times>, after: Option<Times>) -> &'static str {
    let (Some(before), Some(after)) = (before, after) else { return "runs, or is ready to" };
    let ran = after.running_ns.saturating_sub(before.running_ns);
    let waited = after.ready_ns.saturating_sub(before.ready_ns);
    match (ran, waited) {
        // The kernel counts the time without a processor when it ends.
        (0, _) => "waits for a processor",
        _ if ran >= waited => "runs",
        _ => "runs, and waits for a processor most of the time",
    }
}

/// Names the system call in which a thread is blocked.
fn blocked(process: &Process, thread: u32, has_our_calls: bool) -> String {
    match process.call(thread) {
        Ok(Call::Inside { number, .. }) => match calls::name(number).filter(|_| has_our_calls) {
            Some(name) if WAITS.contains(&name) && name != "futex" => format!("sleeps in {name}"),
            Some(name) => format!("blocked in {name}"),
            None => format!("blocked in system call {number}"),
        },
        Ok(Call::Running) => "runs, or is ready to".to_owned(),
        Ok(Call::Outside) => "blocked outside a system call, as in a page fault".to_owned(),
        Err(_) => match process.kernel_function(thread) {
            Some(function) => format!("blocked in the kernel's {function}"),
            None => "blocked; the system call takes the permission to trace the process".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_a_processor_is_told_from_one_that_runs() {
        let times = |running_ns, ready_ns| Some(Times { running_ns, ready_ns });
        assert_eq!(runs(times(5, 5), times(5, 5)), "waits for a processor");
        assert_eq!(runs(times(5, 5), times(35, 5)), "runs");
        assert!(runs(times(5, 5), times(10, 30)).contains("most of the time"));
        assert_eq!(runs(None, times(1, 1)), "runs, or is ready to");
    }
}
