//! A recording as it is reported: its waits by path, the advice on its locks, and single waits.

use std::collections::BTreeMap;
use std::path::Path;

use stanchion_competitive::waits::Recording;
use stanchion_competitive::waits::events::{Event, Events};
use stanchion_paper_klmo91::waits::pool::Pool;

use crate::advise::Advice;
use crate::error::Error;
use crate::paths::{NotRead, Profile, Sum};

/// A recording.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The waits by path of calls.
    pub(crate) profile: Profile,
    /// The names of the locks, as single waits count them.
    locks: Vec<String>,
    /// The advice, if any thread waited for a lock.
    pub(crate) advice: Option<Advice>,
    /// Single waits, if the recording has some.
    pub(crate) events: Option<Events>,
}

/// The kind and the name of a wait.
pub(crate) type Named<'r> = (&'r str, &'r str);

/// The times of the threads that ended waits, while these lasted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakers {
    /// The number of waits.
    pub(crate) waits: u64,
    /// The number of those for which the times are known.
    pub(crate) known: u64,
    /// The length of these together.
    pub(crate) length_ns: u64,
    /// The time on a processor.
    pub(crate) ran_ns: u64,
    /// The time without a processor.
    pub(crate) preempted_ns: u64,
    /// The time blocked in the kernel.
    pub(crate) blocked_ns: u64,
}

impl Wakers {
    /// Returns the shares of the time on a processor, without one, and blocked.
    pub(crate) fn shares(&self) -> [f64; 3] {
        let all = self.length_ns.max(1) as f64;
        [self.ran_ns, self.preempted_ns, self.blocked_ns].map(|time| time as f64 / all)
    }

    /// Returns the share of the waits for which the times are known.
    pub(crate) fn covered(&self) -> f64 {
        self.known as f64 / self.waits.max(1) as f64
    }
}

impl Recorded {
    /// Reads a recording's file. `path` is for errors.
    pub(crate) fn read(path: &Path, text: &str) -> Result<Self, Error> {
        let not_read = |reason| Error::Profile { path: path.to_owned(), reason };
        let profile = Profile::read(text).map_err(not_read)?;
        let file = |error| not_read(NotRead::File(error));
        let recording = Recording::from_json(text.as_bytes()).map_err(file)?;
        let events = Events::from_json(text.as_bytes()).map_err(file)?;
        let locks = recording.locks.iter().map(|lock| lock.0.clone()).collect();
        let pool = Pool::of(vec![recording]);
        let advice = if pool.locks.is_empty() { None } else { Some(Advice::of(pool)?) };
        Ok(Self { profile, locks, advice, events })
    }

    /// Returns the kind and the name of a single wait.
    pub(crate) fn of(&self, wait: &Event) -> Named<'_> {
        if let Some(path) = wait.path.and_then(|path| self.profile.paths.get(path as usize)) {
            return (&path.class, &path.name);
        }
        let lock = wait.lock.and_then(|lock| self.locks.get(lock as usize));
        lock.map_or(("unknown", "unknown"), |name| ("lock", name))
    }

    /// Returns the waits of each name, those that took longest together first.
    pub(crate) fn named(&self) -> Vec<(&str, &str, Sum)> {
        let mut named = self.profile.named();
        let locks = self.advice.iter().flat_map(|advice| &advice.pool.locks);
        let exact: BTreeMap<_, _> =
            locks.map(|lock| (lock.name.as_str(), lock.quantile(0.99))).collect();
        for (class, name, sum) in &mut named {
            if let Some(&p99) = exact.get(name).filter(|_| *class == "lock") {
                (sum.p99_ns, sum.is_bound) = (p99, false);
            }
        }
        named
    }

    /// Returns for each name the times of the threads that ended its waits. Empty if no wait tells.
    pub(crate) fn wakers(&self) -> BTreeMap<Named<'_>, Wakers> {
        let mut wakers = BTreeMap::<Named<'_>, Wakers>::new();
        for wait in self.events.iter().flat_map(|events| &events.waits) {
            let sum = wakers.entry(self.of(wait)).or_default();
            sum.waits += 1;
            if let Some(times) = wait.meanwhile {
                sum.known += 1;
                for (sum, time) in [
                    (&mut sum.length_ns, wait.length_ns),
                    (&mut sum.ran_ns, times.ran_ns),
                    (&mut sum.preempted_ns, times.preempted_ns),
                    (&mut sum.blocked_ns, times.blocked_ns),
                ] {
                    *sum = sum.saturating_add(time);
                }
            }
        }
        wakers.retain(|_, sum| sum.known > 0);
        wakers
    }

    /// Replaces the names of the program, of its functions and threads by numbers.
    pub(crate) fn hide_names(&mut self) {
        let names = self.profile.hide_names();
        let hidden = |(index, name): (usize, &str)| {
            let name = names.get(&("lock".to_owned(), name.to_owned()));
            name.cloned().unwrap_or_else(|| format!("other lock {}", index + 1))
        };
        let locks = self.locks.iter().map(String::as_str).enumerate();
        let of: BTreeMap<String, String> =
            locks.clone().map(|(index, name)| (name.to_owned(), hidden((index, name)))).collect();
        self.locks = locks.map(hidden).collect();
        if let Some(advice) = &mut self.advice {
            advice.hide_names(|name| of.get(name).cloned().unwrap_or_default());
        }
        let Some(events) = &mut self.events else { return };
        let mut processes = BTreeMap::new();
        for (thread, number) in events.threads.iter_mut().zip(1..) {
            let next = processes.len() as u32 + 1;
            thread.process = *processes.entry(thread.process).or_insert(next);
            thread.thread = number;
            thread.name = format!("thread {number}");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
