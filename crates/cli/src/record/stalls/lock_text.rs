//! The locks of a process, as lines for people.

use std::cmp::Reverse;

use stanchion_study::units::count;

use super::locks::{LockView, LocksView};
use super::view::ProcessView;

/// The most locks of a process that are shown with their holders and waiters.
const LOCKS: usize = 20;
/// The most threads of a lock that are shown.
const THREADS: usize = 8;
/// The most rings of threads that are shown.
const RINGS: usize = 4;

/// Appends the lines.
pub(super) fn append(view: &LocksView, process: &ProcessView, lines: &mut Vec<String>) {
    if let Some(reason) = &view.reason {
        lines.push(reason.clone());
        return;
    }
    let named = |id: u32| {
        let thread = process.threads.iter().find(|thread| thread.id == id);
        thread.map_or_else(|| id.to_string(), |thread| format!("{id} ({})", thread.name))
    };
    for ring in view.rings.iter().take(RINGS) {
        lines.push(match ring[..] {
            [(thread, lock)] => {
                format!("the thread {} waits for lock {lock}, which it holds", named(thread))
            }
            _ => {
                let waits =
                    ring.iter().map(|&(thread, lock)| format!("{} for lock {lock}", named(thread)));
                format!(
                    "these threads wait for each other: {}",
                    waits.collect::<Vec<_>>().join(", ")
                )
            }
        });
    }
    let longest = |lock: &LockView| lock.waiters.iter().map(|(_, length, _)| *length).max();
    let mut locks: Vec<&LockView> = view.locks.values().collect();
    // Those that are waited for come first, the longest wait before the others.
    locks.sort_by_key(|lock| Reverse(longest(lock)));
    if !locks.is_empty() {
        lines.push("its recorded locks:".to_owned());
    }
    for lock in locks.iter().take(LOCKS) {
        of_lock(lock, &named, lines);
    }
    if locks.len() > LOCKS {
        let more = count(locks.len() - LOCKS, "lock");
        lines.push(format!("  and {more} more, which are waited for less long or not at all"));
    }
    if view.more > 0 {
        lines.push(format!("  and {} beyond those that a thread shows", count(view.more, "lock")));
    }
    if view.unseen > 0 {
        let threads = count(view.unseen as usize, "thread");
        lines.push(format!("  {threads} so far found no room in the table of locks"));
    }
}

/// Appends the lines of a lock.
fn of_lock(lock: &LockView, named: &dyn Fn(u32) -> String, lines: &mut Vec<String>) {
    lines.push(format!("  {}", lock.name));
    for holder in lock.holders.iter().take(THREADS) {
        let (thread, taken) = (named(holder.thread), &holder.taken);
        lines.push(format!("    held by {thread}: {taken}; {}", holder.activity));
    }
    if lock.holders.len() > THREADS {
        lines.push(format!("    and by {}", count(lock.holders.len() - THREADS, "thread")));
    }
    if lock.holders.is_empty() {
        lines.push(
            "    no thread is known to hold it: it is handed over, or was taken past the record"
                .to_owned(),
        );
    }
    let mut waiters: Vec<_> = lock.waiters.iter().collect();
    waiters.sort_by_key(|(_, length, _)| Reverse(*length));
    for (thread, length, wanted) in waiters.iter().take(THREADS) {
        lines.push(format!("    wanted by {} for {length:.1?}: {wanted}", named(*thread)));
    }
    if waiters.len() > THREADS {
        lines.push(format!("    and by {}", count(waiters.len() - THREADS, "thread")));
    }
}
