//! The locks of a program that records them itself: which thread holds which, and which threads
//! wait for it.
//!
//! Such a program is built with `stanchion-checked` or with the packages of `stanchion patch`. Its
//! recorder writes the locks of each thread into memory that is read here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr;
use std::thread;
use std::time::Duration;

use stanchion_order::Mode;
use stanchion_order::current::{LockState, NAME, SIZE, Table, ThreadState};

use super::activity;
use crate::watch::procfs::Process;

/// The time between two readings. A thread on a processor has its time counted at least once
/// meanwhile.
const BETWEEN: Duration = Duration::from_millis(30);

/// The recorded locks of a process.
#[derive(Debug, Default)]
pub(super) struct LocksView {
    /// The locks that are held or waited for, by number.
    pub(super) locks: BTreeMap<u64, LockView>,
    /// Threads that wait for each other: each with the number of the lock that the next one holds.
    pub(super) rings: Vec<Vec<(u32, u64)>>,
    /// The number of threads without room in the table.
    pub(super) unseen: u64,
    /// The number of locks that are held beyond those that a thread shows.
    pub(super) more: usize,
    /// The reason why there are no locks, if there is one.
    pub(super) reason: Option<String>,
}

/// A lock.
#[derive(Debug, Default)]
pub(super) struct LockView {
    /// Its number and the place of its creation.
    pub(super) name: String,
    /// The threads that hold it.
    pub(super) holders: Vec<HolderView>,
    /// The threads that wait for it: each with the time, and words on the acquisition.
    pub(super) waiters: Vec<(u32, Duration, String)>,
}

/// A wait.
#[derive(Debug)]
pub(super) struct WaitView {
    /// The time since it began.
    pub(super) length: Duration,
    /// The kind, in a word.
    pub(super) kind: &'static str,
    /// The name of the lock or the place.
    pub(super) name: String,
    /// The address that it waits for.
    pub(super) address: u64,
}

/// A thread that holds a lock.
#[derive(Debug)]
pub(super) struct HolderView {
    /// Its number.
    pub(super) thread: u32,
    /// Words on the acquisition.
    pub(super) taken: String,
    /// Words on what it does.
    pub(super) activity: String,
}

/// The memory of a recorder, mapped into this process.
struct Mapped(&'static Table);

impl Mapped {
    /// Maps the memory of a process, which has this name among its descriptors.
    fn open(process: &Process) -> io::Result<Self> {
        let path = process.descriptor(NAME).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "the program has closed its descriptor")
        })?;
        let file = File::open(path)?;
        let wrong = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
        let length = file.metadata()?.len();
        if length != SIZE as u64 {
            return Err(wrong(format!("it has {length} bytes, one of this version has {SIZE}")));
        }
        // SAFETY: new memory anywhere, over the whole of an open file, which cannot be cut: its
        // program makes it once and changes its length no more.
        let start = unsafe {
            let shared = libc::MAP_SHARED;
            libc::mmap(ptr::null_mut(), SIZE, libc::PROT_READ, shared, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: mapped until the drop below. Only the recorder of its program writes to it.
        match unsafe { Table::at(start.cast_const().cast(), SIZE) } {
            Ok(table) => Ok(Self(table)),
            Err(foreign) => {
                // SAFETY: mapped above, and nothing refers to it.
                unsafe { libc::munmap(start, SIZE) };
                Err(wrong(foreign.to_string()))
            }
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `open`. The reference ends with this value.
        unsafe { libc::munmap(ptr::from_ref(self.0).cast_mut().cast(), SIZE) };
    }
}

/// Returns true if the process has the memory of a recorder.
pub(super) fn are_recorded(process: &Process) -> bool {
    process.mapped_files().iter().any(|path| path.as_os_str() == NAME)
}

/// Looks at the locks of a process, and at the waits of its threads for them. Returns `None` if it
/// records none.
pub(super) fn look(process: &Process) -> Option<(LocksView, BTreeMap<u32, WaitView>)> {
    if !are_recorded(process) {
        return None;
    }
    let without = |reason: String| {
        Some((LocksView { reason: Some(reason), ..LocksView::default() }, BTreeMap::new()))
    };
    let mapped = match Mapped::open(process) {
        Ok(mapped) => mapped,
        Err(error) => return without(format!("the table of its locks cannot be read: {error}")),
    };
    let owner = mapped.0.process();
    if owner != process.id {
        return without(format!("its locks are not recorded: it is a fork of the process {owner}"));
    }
    let before = mapped.0.threads();
    let holders = before.iter().filter(|state| !state.held.is_empty() && !state.has_ended);
    let first = activity::sample(process, holders.map(|state| state.thread));
    thread::sleep(BETWEEN);
    let after = mapped.0.threads();
    let activities = activity::since(process, &first);
    let mut view = LocksView { unseen: mapped.0.unseen(), ..LocksView::default() };
    for state in &after {
        view.more += state.more;
        for held in &state.held {
            let lock = view.lock(held);
            let activity = if state.has_ended {
                "it has ended, and the lock stays taken".to_owned()
            } else {
                let known = activities.get(&state.thread).cloned();
                known.unwrap_or_else(|| "not looked at: it has taken it just now".to_owned())
            };
            let taken = words(held, "taken at");
            lock.holders.push(HolderView { thread: state.thread, taken, activity });
        }
    }
    let (now, mut waits) = (activity::now_ns(), BTreeMap::new());
    for state in &after {
        let Some(wait) = wait_of(state, &after, now) else { continue };
        if let Some(lock) = wait.lock {
            let waiters = &mut view.lock(lock).waiters;
            waiters.push((state.thread, wait.view.length, words(lock, "at")));
        }
        waits.insert(state.thread, wait.view);
    }
    view.rings = rings(&before, &after);
    Some((view, waits))
}

impl LocksView {
    /// Returns the view of a lock, and makes it at first.
    fn lock(&mut self, lock: &LockState) -> &mut LockView {
        self.locks
            .entry(lock.number)
            .or_insert_with(|| LockView { name: name(lock), ..LockView::default() })
    }
}

/// A wait of a thread, as the recorder tells it.
struct Wait<'s> {
    /// The lock, if the thread waits for one.
    lock: Option<&'s LockState>,
    view: WaitView,
}

/// Returns the wait of a thread. `all` are the threads of its process.
fn wait_of<'s>(state: &'s ThreadState, all: &'s [ThreadState], now: u64) -> Option<Wait<'s>> {
    let length = |since: u64| Duration::from_nanos(now.saturating_sub(since));
    // The second address of a read-write lock is the next one.
    let is_at = |lock: &LockState, address: u64| lock.address == address & !1;
    let (address, since_ns) = match (&state.wait, &state.awaited) {
        (Some(wait), _) => (wait.address, wait.since_ns),
        (None, Some(awaited)) => (awaited.lock.address, awaited.since_ns),
        (None, None) => return None,
    };
    let view = |kind, name| WaitView { length: length(since_ns), kind, name, address };
    // The wait for a condition has the address of the condition, or tells none.
    let is_condition = |lock: &LockState| state.wait.is_none() || !is_at(lock, address);
    match &state.awaited {
        Some(awaited) if awaited.is_condition && is_condition(&awaited.lock) => {
            let name = format!("with {}", name(&awaited.lock));
            return Some(Wait { lock: None, view: view("condition", name) });
        }
        Some(awaited) if is_at(&awaited.lock, address) => {
            let lock = &awaited.lock;
            let name = format!("{}, {}", name(lock), words(lock, "at"));
            return Some(Wait { lock: Some(lock), view: view("lock", name) });
        }
        _ => {}
    }
    // The thread has not said for which lock: the lock is known by a thread that holds it.
    let mut held = all.iter().flat_map(|state| &state.held);
    Some(match held.find(|lock| is_at(lock, address)) {
        Some(lock) => Wait { lock: Some(lock), view: view("lock", name(lock)) },
        None => Wait { lock: None, view: view("unknown", "an address in parking_lot".to_owned()) },
    })
}

/// Returns a lock's number and its place of creation.
fn name(lock: &LockState) -> String {
    let number = lock.number;
    match &lock.created {
        Some(place) if lock.is_created => format!("lock {number} (created at {place})"),
        Some(place) => format!("lock {number} (first used at {place})"),
        None => format!("lock {number}"),
    }
}

/// Returns words on an acquisition.
fn words(lock: &LockState, verb: &str) -> String {
    let mode = lock.mode.as_ref().map(Mode::to_string).unwrap_or_default();
    match &lock.place {
        Some(place) => format!("{mode}, {verb} {place}"),
        None => mode,
    }
}

/// Returns threads that wait for each other. A wait counts if it is the same one in both readings:
/// then its thread has held all the while what it held.
fn rings(before: &[ThreadState], after: &[ThreadState]) -> Vec<Vec<(u32, u64)>> {
    let awaited = |state: &ThreadState| {
        let awaited = state.awaited.as_ref().filter(|awaited| !awaited.is_condition)?;
        Some((awaited.lock.number, awaited.since_ns))
    };
    let stays = |state: &ThreadState| {
        let mut before = before.iter().filter(|earlier| !earlier.has_ended);
        let earlier = before.find(|earlier| earlier.thread == state.thread);
        earlier.is_some_and(|earlier| awaited(earlier) == awaited(state))
    };
    let mut wants = BTreeMap::<u32, u64>::new();
    let mut holders = BTreeMap::<u64, BTreeSet<u32>>::new();
    for state in after.iter().filter(|state| stays(state)) {
        let Some((wanted, _)) = awaited(state) else { continue };
        wants.insert(state.thread, wanted);
        for held in &state.held {
            holders.entry(held.number).or_default().insert(state.thread);
        }
    }
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for &thread in wants.keys() {
        let mut path = Vec::new();
        if !seen.contains(&thread) && close(thread, thread, &wants, &holders, &mut path) {
            seen.extend(path.iter().map(|&(thread, _)| thread));
            found.push(path);
        }
    }
    found
}

/// Extends `path` from `thread` to a thread that waits for what `first` holds. Returns false, and
/// leaves the path as it was, if there is none.
fn close(
    thread: u32,
    first: u32,
    wants: &BTreeMap<u32, u64>,
    holders: &BTreeMap<u64, BTreeSet<u32>>,
    path: &mut Vec<(u32, u64)>,
) -> bool {
    let Some(&wanted) = wants.get(&thread) else { return false };
    path.push((thread, wanted));
    for &holder in holders.get(&wanted).into_iter().flatten() {
        let is_on_path = path.iter().any(|&(on, _)| on == holder);
        if holder == first || !is_on_path && close(holder, first, wants, holders, path) {
            return true;
        }
    }
    path.pop();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(wants: &[(u32, u64)], holds: &[(u64, u32)]) -> Option<Vec<(u32, u64)>> {
        let mut holders = BTreeMap::<u64, BTreeSet<u32>>::new();
        for &(lock, thread) in holds {
            holders.entry(lock).or_default().insert(thread);
        }
        let mut path = Vec::new();
        let first = wants[0].0;
        close(first, first, &wants.iter().copied().collect(), &holders, &mut path).then_some(path)
    }

    #[test]
    fn a_ring_is_closed_over_each_holder_of_a_shared_lock() {
        assert_eq!(found(&[(1, 10), (2, 20)], &[(10, 2), (20, 1)]), Some(vec![(1, 10), (2, 20)]));
        assert_eq!(found(&[(1, 10)], &[(10, 1)]), Some(vec![(1, 10)]));
        assert_eq!(found(&[(1, 10)], &[(10, 2)]), None);
        // The first holder waits for nothing, the second one for a ring without the first thread.
        let wants = [(1, 10), (3, 30), (4, 40), (5, 50)];
        let holds = [(10, 2), (10, 3), (30, 4), (40, 3), (10, 5), (50, 1)];
        assert_eq!(found(&wants, &holds), Some(vec![(1, 10), (5, 50)]));
    }
}
