//! From the log of a program to the single waits of its recording.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use stanchion_competitive::waits::events::{Event, Events, Thread};
use stanchion_competitive::waits::log::Logged;
use stanchion_competitive::waits::shared::Gathered;

use super::names::Named;
use crate::watch::PROC;
use crate::watch::procfs::Process;

/// Returns the waits of a log, as the recording has them that began at `began_ns`.
pub(super) fn events(log: &Logged, named: &Named, gathered: &Gathered, began_ns: u64) -> Events {
    let mut threads = BTreeMap::<(u32, u32), u32>::new();
    for wait in &log.waits {
        threads.insert((wait.process, wait.thread), 0);
        if wait.waker != 0 {
            threads.insert((wait.process, wait.waker), 0);
        }
    }
    for (index, thread) in (0..).zip(threads.values_mut()) {
        *thread = index;
    }
    let index = |process: u32, thread: u32| threads.get(&(process, thread)).copied();
    let indices = |name: u32| named.indices.get(gathered.names.get(name as usize)?).copied();
    let mut waits: Vec<Event> = log
        .waits
        .iter()
        .map(|wait| {
            let place = wait.name.and_then(indices);
            let times =
                wait.meanwhile.map(|times| [times.ran_ns, times.preempted_ns, times.blocked_ns]);
            let sum = times.map(|times| times.into_iter().fold(0, u64::saturating_add));
            let waker = Some(wait.waker).filter(|&waker| waker != 0);
            let waker = waker.and_then(|waker| index(wait.process, waker));
            Event {
                start_ns: wait.start_ns.saturating_sub(began_ns).min(MOST_NS),
                length_ns: wait.length_ns.min(MOST_NS),
                // Each thread is in the list.
                thread: index(wait.process, wait.thread).unwrap_or(0),
                lock: place.and_then(|(lock, _)| lock),
                path: place.map(|(_, path)| path),
                waker,
                // A wild program may have written to the log.
                meanwhile: wait.meanwhile.filter(|_| {
                    waker.is_some() && sum.is_some_and(|sum| sum <= wait.length_ns.min(MOST_NS))
                }),
            }
        })
        .collect();
    waits.sort_by_key(|wait| (wait.start_ns, wait.thread));
    let threads = threads.into_keys().map(|thread| named_thread(thread, log)).collect();
    Events { seen: log.seen.clamp(waits.len() as u64, MOST_NS), threads, waits }
}

/// Longer times than this, which are 104 days, are cut.
const MOST_NS: u64 = 1 << 53;

/// Returns a thread with the name that was noted, or else the one that it has if it still runs.
fn named_thread((process, thread): (u32, u32), log: &Logged) -> Thread {
    let noted = log.names.get(&(process, thread)).cloned();
    let name = noted.or_else(|| {
        let name = Process::at(Path::new(PROC), process).read(thread, "comm").ok()?;
        Some(name.trim_end().replace(char::is_control, "?"))
    });
    Thread { process, thread, name: name.unwrap_or_default() }
}

/// Returns the waits with the text of their section, which has no more than `limit` bytes, and can
/// be read again. Of waits with long numbers or many threads, a part is left out.
pub(super) fn within(mut events: Events, limit: u64) -> (Events, String) {
    loop {
        if events.waits.len() <= Events::MOST_WAITS && events.threads.len() <= Events::MOST_THREADS
        {
            let text = events.to_json();
            if text.len() as u64 <= limit.max(LEAST) || events.waits.is_empty() {
                return (events, text);
            }
        }
        halve(&mut events);
    }
}

/// Leaves every second wait out, and the threads that no wait names then.
fn halve(events: &mut Events) {
    let mut index = 0_u32;
    events.waits.retain(|_| {
        index = index.wrapping_add(1);
        index.is_multiple_of(2)
    });
    let named = events.waits.iter().flat_map(|wait| [Some(wait.thread), wait.waker]);
    let named: BTreeSet<u32> = named.flatten().collect();
    // In the order that they had, so the waits keep theirs.
    let indices: BTreeMap<u32, u32> = named.into_iter().zip(0..).collect();
    let renumbered = |thread: u32| indices.get(&thread).copied();
    for wait in &mut events.waits {
        wait.thread = renumbered(wait.thread).unwrap_or(0);
        wait.waker = wait.waker.and_then(renumbered);
    }
    let mut index = 0..;
    events.threads.retain(|_| index.next().is_some_and(|index| indices.contains_key(&index)));
}

/// The length that a section has without waits.
const LEAST: u64 = 4096;

#[cfg(test)]
mod tests {
    use stanchion_competitive::waits::events::Meanwhile;
    use stanchion_competitive::waits::log::Wait;

    use super::*;

    fn wait(start_ns: u64) -> Wait {
        Wait {
            // No process has this number.
            process: u32::MAX,
            thread: 8,
            start_ns,
            length_ns: 90,
            name: Some(1),
            waker: 9,
            meanwhile: Some(Meanwhile { ran_ns: 50, preempted_ns: 30, blocked_ns: 10 }),
        }
    }

    fn converted(waits: Vec<Wait>) -> Events {
        let name = || String::from("S/bin/x+0x10");
        let gathered = Gathered {
            processes: 1,
            lockers: 1,
            nameless: 0,
            unwalked: 0,
            losses: Vec::new(),
            unit_ns: 400,
            cost_ns: 5_000,
            locks: BTreeMap::new(),
            names: vec![String::from("C?"), name()],
        };
        let named = Named {
            locks: Vec::new(),
            others: Vec::new(),
            paths: Vec::new(),
            indices: BTreeMap::from([(name(), (Some(3), 4))]),
            nameless: false,
            unwalked: 0,
        };
        let names = BTreeMap::from([((u32::MAX, 8), String::from("worker"))]);
        events(&Logged { seen: 5, late: 0, waits, names }, &named, &gathered, 1_000)
    }

    #[test]
    fn waits_are_told_in_terms_of_the_recording() {
        let events = converted(vec![wait(3_000), wait(1_200)]);
        assert_eq!(events.seen, 5);
        let [first, second] = events.waits[..] else { panic!("{events:?}") };
        assert_eq!((first.start_ns, second.start_ns), (200, 2_000));
        assert_eq!((first.lock, first.path), (Some(3), Some(4)));
        assert_eq!(events.thread_of(&first).unwrap().name, "worker");
        let waker = events.waker_of(&first).unwrap();
        assert_eq!((waker.thread, waker.name.as_str()), (9, ""));
        assert_eq!(first.meanwhile.unwrap().preempted_ns, 30);
    }

    #[test]
    fn what_cannot_be_is_left_out() {
        let unknown = Wait { name: Some(0), waker: 0, ..wait(2_000) };
        let long = Wait { length_ns: 89, name: Some(700), ..wait(500) };
        let events = converted(vec![unknown, long]);
        let [long, unknown] = events.waits[..] else { panic!("{events:?}") };
        assert_eq!((long.start_ns, long.lock, long.path, long.meanwhile), (0, None, None, None));
        assert_eq!((unknown.waker, unknown.meanwhile), (None, None));
    }

    #[test]
    fn a_section_keeps_its_limit() {
        let events = converted((0..1_000).map(|start| wait(1_000 + start)).collect());
        let (all, text) = within(events.clone(), 1 << 20);
        assert_eq!((all, text), (events.clone(), events.to_json()));
        let (some, text) = within(events, 10_000);
        assert!(text.len() <= 10_000 && some.waits.len() > 50, "{}", some.waits.len());
    }

    #[test]
    fn threads_of_waits_that_are_left_out_are_too() {
        let of = |thread: u32| Wait { thread, waker: thread + 1, ..wait(u64::from(thread)) };
        let events = converted((0..3_000).map(|number| of(2 * number + 10)).collect());
        assert_eq!(events.threads.len(), 6_000);
        let (some, text) = within(events, 10_000);
        assert!(text.len() <= 10_000 && some.waits.len() > 30, "{}", some.waits.len());
        assert_eq!(some.threads.len(), 2 * some.waits.len());
        for wait in &some.waits {
            let (thread, waker) = (some.thread_of(wait).unwrap(), some.waker_of(wait).unwrap());
            assert_eq!(waker.thread, thread.thread + 1);
        }
    }

    #[test]
    fn a_recording_has_no_more_threads_than_are_read() {
        let mut events = converted(vec![wait(1_000), wait(2_000)]);
        let thread = events.threads[0].clone();
        events.threads = vec![thread; Events::MOST_THREADS + 1];
        let (some, _) = within(events, 1 << 20);
        assert_eq!((some.threads.len(), some.waits.len()), (2, 1));
    }
}
