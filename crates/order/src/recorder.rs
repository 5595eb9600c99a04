//! The record of all threads: the graph, the locks in it and the findings.
//!
//! An acquisition that its thread has seen before touches nothing here. Another one takes the lock
//! of the record, and a call path if it is the first of its kind. A call path is taken while that
//! lock is free, because taking one may wait for another thread's backtrace.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::current;
use crate::entry::LockEntry;
use crate::graph::{self, Graph, Hold, Link, Pair};
use crate::json::Pairs;
use crate::local::{Held, Local};
use crate::mode::{Mode, Wanted};
use crate::path::CallPath;
use crate::report::{CallSite, Cycle, Lock, Losses, Recursion, Report, Step};

/// The most findings of each kind that are kept.
const FINDINGS: usize = 256;

/// The most pairs that are kept for the file.
const PAIRS: usize = 256;

/// The note of a pair, made when it is seen for the first time.
struct Sighting {
    /// The thread: its name and number, for the reader.
    thread: String,
    /// The thread's number.
    number: u64,
    /// The held lock, and the place at which it was taken.
    held: (Lock, CallSite),
    /// The taken lock, and the place at which it was taken.
    taken: (Lock, CallSite),
    /// The call path of the second acquisition.
    path: Arc<CallPath>,
}

/// The state that all threads share.
struct Record {
    /// The orders of locks.
    graph: Graph<Sighting>,
    /// The orders of places of creation.
    classes: Graph<Sighting>,
    /// The number of each place of creation.
    class_of: BTreeMap<CallSite, u64>,
    /// Pairs of locks that have ended, by the numbers of their places of creation: one for each
    /// pair of places, and at most [`PAIRS`].
    ended: BTreeMap<(u64, u64), Link<Sighting>>,
    /// The number of pairs that are not in `ended` because it was full.
    cut_pairs: u64,
    /// The locks that have not ended, by number.
    locks: BTreeMap<u64, Lock>,
    /// Entries of locks that have ended.
    free: Vec<&'static LockEntry>,
    /// The number of locks so far.
    count: u64,
    /// Names of threads, by number, as far as they have added a pair.
    names: BTreeMap<u64, String>,
    /// All findings.
    found: Report,
}

static RECORD: Mutex<Record> = Mutex::new(Record {
    graph: Graph::new(),
    classes: Graph::new(),
    class_of: BTreeMap::new(),
    ended: BTreeMap::new(),
    cut_pairs: 0,
    locks: BTreeMap::new(),
    free: Vec::new(),
    count: 0,
    names: BTreeMap::new(),
    found: Report {
        cycles: Vec::new(),
        hints: Vec::new(),
        recursions: Vec::new(),
        waits: Vec::new(),
        held_across: Vec::new(),
        losses: Losses {
            unseen_releases: 0,
            too_deep: 0,
            cut_searches: 0,
            cut_contexts: 0,
            cut_findings: 0,
            unnamed_waits: 0,
            file: None,
        },
        locks: 0,
        pairs: 0,
    },
});

/// The acquisitions by threads that held too many locks. Relaxed: a count. It is not in the record,
/// because the lock that was taken may be that of the allocator, for which the record may wait.
static TOO_DEEP: AtomicU64 = AtomicU64::new(0);

/// Locks the record. A panic while it was locked leaves it whole: each change is one call.
fn record() -> MutexGuard<'static, Record> {
    RECORD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives an entry to a lock at its first use, if no other thread has.
pub(crate) fn begin(of: &AtomicPtr<LockEntry>, created: Option<CallSite>, place: CallSite) {
    let mut record = record();
    // Relaxed: all writers hold the lock of the record.
    if !of.load(Ordering::Relaxed).is_null() {
        return;
    }
    record.count += 1;
    let number = record.count;
    let lock = Lock { number, place: created.unwrap_or(place), created: created.is_some() };
    record.locks.insert(number, lock);
    let entry = record.free.pop().unwrap_or_else(|| Box::leak(Box::new(LockEntry::new())));
    entry.give(number, current::creation(lock.place, lock.created));
    // Release: pairs with the Acquire in `Identity::known_entry`, before the number is read.
    of.store(std::ptr::from_ref(entry).cast_mut(), Ordering::Release);
}

/// Ends a lock. It leaves the graph, and its entry is for a later lock.
pub(crate) fn end(local: &Local, entry: &'static LockEntry) {
    let mut record = record();
    let mut was_held = false;
    while local.remove(|held| std::ptr::eq(held.entry, entry)).is_some() {
        was_held = true;
    }
    if was_held && entry.lose() {
        record.found.losses.unseen_releases += 1;
    }
    let number = entry.number();
    for pair in record.graph.remove(number) {
        record.keep(pair);
    }
    record.locks.remove(&number);
    entry.give(0, 0);
    record.free.push(entry);
}

/// Notes that a thread is about to block for a lock, and returns what is found thereby.
#[inline]
pub(crate) fn acquiring(
    local: &Local,
    entry: &'static LockEntry,
    wanted: Wanted,
    place: CallSite,
) -> Option<Report> {
    if local.is_empty() || entry.is_lost() || local.has_seen(local.key(entry, wanted)) {
        return None;
    }
    first_of_thread(local, entry, wanted, place)
}

/// Notes an acquisition that the thread has not seen, or not lately.
#[cold]
fn first_of_thread(
    local: &Local,
    entry: &'static LockEntry,
    wanted: Wanted,
    place: CallSite,
) -> Option<Report> {
    remove_dead(local);
    let held: Vec<Held> = local.held().collect();
    let mut set: Vec<Hold> = held.iter().map(|held| (held.number, held.mode)).collect();
    set.sort_unstable();
    let taken = (entry.number(), wanted.mode());
    let pairs = held.iter().filter(|held| held.number != taken.0);
    let pair = |held: &Held| Pair {
        thread: local.thread(),
        held: (held.number, held.mode),
        taken,
        set: &set,
    };
    // The lock that is upgraded is in the set all the same: it keeps the acquisition apart.
    let again =
        held.iter().find(|held| held.number == taken.0 && wanted.is_blocked_by_own(held.mode));

    // A known pair of another thread costs no call path.
    let is_new = {
        let record = record();
        pairs.clone().any(|held| !record.graph.knows(&pair(held)))
    };
    let mut news = Report::default();
    if is_new || again.is_some() {
        let path = Arc::new(CallPath::capture());
        let name = name_of(local.thread());
        let mut record = record();
        for held in pairs.filter(|held| held.is_alive()) {
            let Some(sighting) = record.sighting(held, (entry, place), &name, local, &path) else {
                continue;
            };
            let (cycles, hints) = record.add(pair(held), &Arc::new(sighting));
            news.cycles.extend(cycles);
            news.hints.extend(hints);
        }
        if let Some(held) = again {
            news.recursions.extend(record.recursion(held, (taken.1, place), name, path));
        }
        record.found.keep(&mut news);
        record.count_into(&mut news);
    }
    local.remember(local.key(entry, wanted));
    let is_empty = news.cycles.is_empty() && news.hints.is_empty() && news.recursions.is_empty();
    (!is_empty).then_some(news)
}

/// Removes locks from the thread's list that are recorded no more.
fn remove_dead(local: &Local) {
    while let Some(held) = local.remove(|held| !held.is_alive()) {
        // A lost lock was counted when it was lost. This one has ended in another thread.
        if held.entry.number() != held.number {
            record().found.losses.unseen_releases += 1;
        }
    }
}

/// Notes that the thread holds a lock.
#[inline]
pub(crate) fn acquired(local: &Local, taken: Held) {
    let Held { entry, mode, .. } = taken;
    if entry.is_lost() {
        return local.await_none();
    }
    if local.find(entry).is_some_and(|held| held.is_alive() && held.mode.conflicts(mode)) {
        // The lock was taken, so it was free: its release was not seen.
        local.await_none();
        return lose(local, entry);
    }
    if !local.push(taken) {
        TOO_DEEP.fetch_add(1, Ordering::Relaxed);
    }
}

/// Notes that the thread holds a lock no more.
#[inline]
pub(crate) fn released(local: &Local, entry: &'static LockEntry, mode: Mode) {
    if take_out(local, entry, mode).is_none() && !local.remove_too_deep() && !entry.is_lost() {
        // Another thread has taken it, or this one past the wrapper.
        lose(local, entry);
    }
}

/// Notes that the thread holds a lock in another mode than before.
#[inline]
pub(crate) fn changed(local: &Local, entry: &'static LockEntry, from: Mode, to: Mode) {
    match take_out(local, entry, from) {
        Some(held) => acquired(local, Held { mode: to, ..held }),
        // It is one of those that were only counted, and stays so.
        None if local.is_too_deep() || entry.is_lost() => local.await_none(),
        None => {
            local.await_none();
            lose(local, entry);
        }
    }
}

/// Takes a lock that the thread holds in a mode out of its list.
#[inline]
fn take_out(local: &Local, entry: &'static LockEntry, mode: Mode) -> Option<Held> {
    let is_shared = |mode| matches!(mode, Mode::Shared | Mode::SharedRecursive);
    local.remove(|held| {
        std::ptr::eq(held.entry, entry)
            && (held.mode == mode || is_shared(held.mode) && is_shared(mode))
    })
}

/// Removes a lock from the graph, and counts it.
#[cold]
fn lose(local: &Local, entry: &'static LockEntry) {
    let mut record = record();
    if entry.lose() {
        let number = entry.number();
        // Its release was not seen, so what was seen of it may be wrong: it is not kept.
        drop(record.graph.remove(number));
        record.found.losses.unseen_releases += 1;
        // The thread has not blocked itself: it did not hold the lock any more.
        record.found.recursions.retain(|found| found.lock.number != number || !found.is_fatal());
    }
    while local.remove(|held| std::ptr::eq(held.entry, entry)).is_some() {}
}

/// Returns a lock by its number, if it has not ended.
pub(crate) fn lock(number: u64) -> Option<Lock> {
    record().locks.get(&number).copied()
}

/// Returns all findings so far.
pub(crate) fn report() -> Report {
    let record = record();
    let mut report = record.found.clone();
    record.count_into(&mut report);
    report
}

/// Returns the pairs of locks that live, and of those that have ended.
pub(crate) fn pairs() -> Pairs {
    let record = record();
    let mut pairs = Pairs { seen: Vec::new(), cut: record.cut_pairs };
    let mut add = |pair: &Link<Sighting>| {
        if pairs.seen.len() < PAIRS {
            pairs.seen.push(record.step(pair));
        } else {
            pairs.cut += 1;
        }
    };
    record.graph.first_seen().for_each(|pair| add(&pair));
    record.ended.values().for_each(add);
    pairs
}

/// Returns the name and number of the calling thread.
fn name_of(number: u64) -> String {
    match std::thread::current().name() {
        Some(name) => format!("{number} `{name}`"),
        None => number.to_string(),
    }
}

impl Record {
    /// Notes what is known of a pair. Returns `None` if one of its locks has ended.
    fn sighting(
        &self,
        held: &Held,
        (entry, place): (&LockEntry, CallSite),
        thread: &str,
        local: &Local,
        path: &Arc<CallPath>,
    ) -> Option<Sighting> {
        Some(Sighting {
            thread: thread.to_owned(),
            number: local.thread(),
            held: (*self.locks.get(&held.number)?, held.place),
            taken: (*self.locks.get(&entry.number())?, place),
            path: Arc::clone(path),
        })
    }

    /// Adds a pair to both graphs, and returns the new cycles of locks and of places.
    fn add(&mut self, pair: Pair<'_>, seen: &Arc<Sighting>) -> (Vec<Cycle>, Vec<Cycle>) {
        self.names.entry(seen.number).or_insert_with(|| seen.thread.clone());
        let cycles = self.graph.add(pair, seen);

        let held = self.class(seen.held.0.place);
        let taken = self.class(seen.taken.0.place);
        // Two locks of one place count only if no thread holds the other's first lock. For two
        // places the first lock says nothing: another one of that place may be held as well.
        let is_first = |hold: &&Hold| held != taken && hold.0 == pair.held.0;
        let set: Vec<Hold> = pair.set.iter().filter(|hold| !is_first(hold)).copied().collect();
        let class = Pair {
            thread: pair.thread,
            held: (held, pair.held.1),
            taken: (taken, pair.taken.1),
            set: &set,
        };
        let hints = self.classes.add(class, seen);

        let cycles: Vec<Cycle> = cycles.iter().map(|cycle| self.told(cycle)).collect();
        // A cycle of locks is one of places too, and is told once.
        let hints = if cycles.is_empty() { hints } else { Vec::new() };
        let hints = hints.iter().map(|cycle| self.told(cycle)).collect();
        (cycles, hints)
    }

    /// Returns the number of a place of creation.
    fn class(&mut self, place: CallSite) -> u64 {
        let next = self.class_of.len() as u64;
        *self.class_of.entry(place).or_insert(next)
    }

    /// Writes a cycle for the reader.
    fn told(&self, cycle: &graph::Cycle<Sighting>) -> Cycle {
        let steps = cycle.links.iter().map(|link| self.step(link)).collect();
        Cycle { steps, needs_writer: !cycle.firm }
    }

    /// Writes a step for the reader.
    fn step(&self, link: &Link<Sighting>) -> Step {
        let seen = &link.note;
        let thread = if link.thread == seen.number {
            seen.thread.clone()
        } else {
            let name = self.names.get(&link.thread).cloned();
            let name = name.unwrap_or_else(|| link.thread.to_string());
            format!("{name} (first seen in thread {})", seen.thread)
        };
        Step {
            thread,
            held: seen.held.0,
            held_mode: link.held.1,
            held_place: seen.held.1,
            taken: seen.taken.0,
            taken_mode: link.taken.1,
            taken_place: seen.taken.1,
            path: Arc::clone(&seen.path),
        }
    }

    /// Keeps a pair of a lock that ends, if it is the first of its places.
    fn keep(&mut self, pair: Link<Sighting>) {
        let [held, taken] =
            [pair.note.held.0, pair.note.taken.0].map(|lock| self.class(lock.place));
        let is_full = self.ended.len() >= PAIRS;
        match self.ended.entry((held, taken)) {
            Entry::Occupied(_) => {}
            Entry::Vacant(_) if is_full => self.cut_pairs += 1,
            Entry::Vacant(entry) => {
                entry.insert(pair);
            }
        }
    }

    /// Returns a thread's second acquisition of a lock, if these two places are new.
    fn recursion(
        &self,
        held: &Held,
        (taken_mode, taken_place): (Mode, CallSite),
        thread: String,
        path: Arc<CallPath>,
    ) -> Option<Recursion> {
        let lock = *self.locks.get(&held.number)?;
        let (held_mode, held_place) = (held.mode, held.place);
        let found =
            Recursion { thread, lock, held_mode, held_place, taken_mode, taken_place, path };
        let is_same = |before: &Recursion| {
            (before.held_place, before.taken_place, before.is_fatal())
                == (held_place, taken_place, found.is_fatal())
                // A fatal one may be withdrawn for its lock, so each lock has its own.
                && (!found.is_fatal() || before.lock == lock)
        };
        (!self.found.recursions.iter().any(is_same)).then_some(found)
    }

    /// Writes the present numbers into a report.
    fn count_into(&self, report: &mut Report) {
        let cuts = self.graph.cuts();
        report.losses = Losses {
            cut_searches: cuts.searches,
            cut_contexts: cuts.contexts,
            too_deep: TOO_DEEP.load(Ordering::Relaxed),
            ..self.found.losses.clone()
        };
        report.locks = self.count;
        report.pairs = self.graph.len();
    }
}

impl Report {
    /// Keeps new findings, as far as there is room, and takes away those that it does not keep.
    fn keep(&mut self, news: &mut Self) {
        fn take<T: Clone>(into: &mut Vec<T>, from: &mut Vec<T>) -> u64 {
            let all = from.len();
            from.truncate(FINDINGS.saturating_sub(into.len()));
            into.extend_from_slice(from);
            (all - from.len()) as u64
        }
        self.losses.cut_findings += take(&mut self.cycles, &mut news.cycles)
            + take(&mut self.hints, &mut news.hints)
            + take(&mut self.recursions, &mut news.recursions);
    }
}
