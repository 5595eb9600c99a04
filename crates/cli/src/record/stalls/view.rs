//! Where threads are now: their waits in the table, and what `/proc` says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use stanchion_competitive::waits::current::{CurrentWait, Kind};
use stanchion_competitive::waits::shared::Shared;

use super::super::calls::Class;
use super::super::names::Names;
use super::activity::{WAITS, now_ns};
use super::locks::{self, LocksView, WaitView};
use crate::watch::calls;
use crate::watch::procfs::{Call, Process};

/// The most processes that are looked at.
const PROCESSES: usize = 200;
/// The most threads of a process that are looked at.
const THREADS: usize = 20_000;

/// The processes that are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// This one.
    Only(u32),
    /// All that descend from this one, and others that wait in the table.
    Under(u32),
}

/// The threads of some processes.
#[derive(Debug)]
pub(super) struct View {
    /// The processes, by number.
    pub(super) processes: Vec<ProcessView>,
    /// The number of waits that found no slot.
    pub(super) unseen: u64,
}

/// The threads of a process.
#[derive(Debug)]
pub(super) struct ProcessView {
    /// Its number.
    pub(super) id: u32,
    /// Its name.
    pub(super) name: String,
    /// Its threads, by number. None if it has ended.
    pub(super) threads: Vec<ThreadView>,
    /// The number of threads beyond [`THREADS`].
    pub(super) more: usize,
    /// Its locks, if it records them itself.
    pub(super) locks: Option<LocksView>,
    /// True if the shim is in it.
    pub(super) has_shim: bool,
}

/// A thread.
#[derive(Debug)]
pub(super) struct ThreadView {
    /// Its number.
    pub(super) id: u32,
    /// Its name.
    pub(super) name: String,
    /// Its wait in the table, if there is one.
    pub(super) wait: Option<WaitView>,
    /// The words of `/proc` on it.
    pub(super) activity: String,
    /// True if `/proc` says that it is not in `futex`.
    pub(super) is_elsewhere: bool,
}

/// Looks at the processes: at the table of the shim with its file, and at the locks of those that
/// record them.
pub(super) fn look(root: &Path, table: Option<(&Shared, &Path)>, scope: Scope) -> View {
    let ids = match (scope, table) {
        (Scope::Under(id), Some((table, file))) => under(root, id, table, file),
        (Scope::Only(id) | Scope::Under(id), _) => BTreeSet::from([id]),
    };
    let mut processes: Vec<ProcessView> = ids.iter().map(|&id| threads(root, id)).collect();
    // After `/proc`: a thread that has ended its wait meanwhile is not among them.
    let waits = table.map(|(table, _)| table.current_waits()).unwrap_or_default();
    let now = now_ns();
    let mut names = Names::new();
    let mut newest = BTreeMap::<(u32, u32), &(CurrentWait, Option<String>)>::new();
    for wait in &waits {
        let of_thread = newest.entry((wait.0.process, wait.0.thread)).or_insert(wait);
        // One that was left by `longjmp` stays in the table.
        if of_thread.0.since_ns < wait.0.since_ns {
            *of_thread = wait;
        }
    }
    for process in &mut processes {
        let recorded = locks::look(&Process::at(root, process.id));
        let (locks, mut of_locks) =
            recorded.map_or_else(Default::default, |(locks, waits)| (Some(locks), waits));
        process.has_shim = table.is_some();
        process.locks = locks;
        for thread in &mut process.threads {
            let found = newest.get(&(process.id, thread.id));
            let seen = found.map(|(wait, place)| named(wait, place.as_deref(), now, &mut names));
            // The shim sees the same wait. It knows the function, and not the lock.
            thread.wait = match (of_locks.remove(&thread.id), seen) {
                (Some(recorded), Some(seen)) => {
                    Some(WaitView { name: format!("{}; {}", recorded.name, seen.name), ..recorded })
                }
                (recorded, seen) => recorded.or(seen),
            };
        }
    }
    View { processes, unseen: table.map_or(0, |(table, _)| table.unseen_waits()) }
}

/// Returns the processes that descend from one, and those that wait in the table.
fn under(root: &Path, id: u32, table: &Shared, file: &Path) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut next = Process::at(root, id).children();
    // The waits of a process that was killed stay in the table, and another process may have got
    // its number.
    let waits = table.current_waits();
    let waiting: BTreeSet<u32> = waits.iter().map(|(wait, _)| wait.process).collect();
    next.extend(
        waiting.into_iter().filter(|&id| Process::at(root, id).mapped_files().contains(file)),
    );
    while let Some(id) = next.pop() {
        if found.len() < PROCESSES && Process::at(root, id).group() == Some(id) && found.insert(id)
        {
            next.extend(Process::at(root, id).children());
        }
    }
    found
}

/// Returns the waits that a program had not ended when it ended itself: how many threads waited for
/// what, and for how long the first of them.
pub(super) fn left(table: &Shared) -> Vec<(usize, WaitView)> {
    let waits = table.current_waits();
    let now = now_ns();
    let mut names = Names::new();
    let mut all = BTreeMap::<(&str, String), (usize, WaitView)>::new();
    for (wait, place) in &waits {
        let wait = named(wait, place.as_deref(), now, &mut names);
        // The idle workers of a pool wait at each end.
        if wait.kind == Class::Idle.word() {
            continue;
        }
        let key = (wait.kind, wait.name.clone());
        let entry =
            all.entry(key).or_insert_with(|| (0, WaitView { length: Duration::ZERO, ..wait }));
        entry.0 += 1;
        entry.1.length = entry.1.length.max(wait.length);
    }
    let mut left: Vec<_> = all.into_values().collect();
    left.sort_by_key(|(_, wait)| std::cmp::Reverse(wait.length));
    left
}

/// Returns the threads of a process with what `/proc` says of them.
fn threads(root: &Path, id: u32) -> ProcessView {
    let process = Process::at(root, id);
    let has_our_calls = process.has_our_calls();
    let all = process.threads().unwrap_or_default();
    let more = all.len().saturating_sub(THREADS);
    let mut threads = Vec::new();
    for thread in all.into_iter().take(THREADS) {
        let call = process.call(thread);
        // The thread has ended.
        let Ok(stat) = process.stat(thread) else { continue };
        if matches!(stat.state, 'Z' | 'X') {
            continue;
        }
        let mut is_elsewhere = false;
        let activity = match call {
            Ok(Call::Inside { number, .. }) => {
                let name = calls::name(number).filter(|_| has_our_calls);
                is_elsewhere = name.is_some_and(|name| !WAITS.contains(&name));
                name.map_or_else(|| format!("in system call {number}"), |name| format!("in {name}"))
            }
            Ok(Call::Running) => {
                is_elsewhere = true;
                "running, or ready to".to_owned()
            }
            Ok(Call::Outside) => "blocked outside a system call".to_owned(),
            Err(_) => match (stat.state, process.kernel_function(thread)) {
                ('R', _) => "running, or ready to".to_owned(),
                (_, Some(function)) => format!("asleep in the kernel's {function}"),
                (state, None) => format!("in state {state}"),
            },
        };
        let thread = ThreadView { id: thread, name: stat.name, wait: None, activity, is_elsewhere };
        threads.push(thread);
    }
    let name = process.name().unwrap_or_default();
    ProcessView { id, name, threads, more, locks: None, has_shim: true }
}

/// Returns a wait with its name.
pub(super) fn named<'t>(
    wait: &CurrentWait,
    place: Option<&'t str>,
    now: u64,
    names: &mut Names<'t>,
) -> WaitView {
    let (class, name) =
        place.map_or_else(|| (Class::Unknown, "unknown".to_owned()), |place| names.of(place));
    let kind = match wait.kind {
        Kind::Mutex | Kind::RwLock => Class::Lock.word(),
        Kind::Condition => Class::Condition.word(),
        Kind::Join => Class::Join.word(),
        Kind::Semaphore => "semaphore",
        _ => class.word(),
    };
    let length = Duration::from_nanos(now.saturating_sub(wait.since_ns));
    WaitView { length, kind, name, address: wait.address }
}
