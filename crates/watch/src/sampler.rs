//! Looks at the workers of a watch, and makes samples of what was seen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stanchion_machine::clock::monotonic;
use stanchion_machine::presence::Presence;
use stanchion_machine::presence::switches::Ring;

use crate::account::{Account, Split};
use crate::history::Parks;
use crate::polls::Task;
use crate::records::OffProcessor;
use crate::registry::Registry;
use crate::sample::{Cause, Means, Parts, Sample, Stall, State, WorkerSample};
use crate::system::{self, Activity, BlockedIn, Reading};
use crate::worker::Worker;

/// Looks at the workers of a [`Watch`](crate::Watch). Each sampler has intervals of its own.
///
/// A stall is told after two looks at least: the parts of a time are known between looks. So look
/// at least twice as often as stalls should be told, for example each 100 ms.
///
/// ```
/// let watch = stanchion_watch::Watch::new();
/// let mut sampler = watch.sampler();
/// let worker = watch.enter("mine");
/// let sample = sampler.sample();
/// assert_eq!(sample.workers.len(), 1);
/// drop(worker);
/// assert!(sampler.sample().workers.is_empty());
/// ```
#[derive(Debug)]
pub struct Sampler {
    /// The workers of the watch.
    registry: Arc<Registry>,
    /// The workers that were seen and live, by their numbers.
    seen: BTreeMap<u64, Seen>,
    /// The moment of the last sample, in nanoseconds of the monotonic clock.
    since: u64,
}

/// A worker at one look.
#[derive(Clone, Copy, Debug)]
struct View {
    /// Its parks.
    parks: Parks,
    /// The kernel's counts, if there are any and they are needed.
    reading: Option<Reading>,
    /// False if it parked or was unparked while it was read, at each try. Then its state is not
    /// known.
    is_of_one_moment: bool,
}

impl View {
    /// The most tries to see both parts of one moment.
    const TRIES: u32 = 3;

    /// Looks at a worker, of which the last look saw `last`. Returns `None` if it was writing.
    fn of(worker: &Worker, last: Option<Parks>) -> Option<Self> {
        let mut tries = 1;
        loop {
            let parks = worker.history.read()?;
            if parks.is_parked == 1 && last == Some(parks) {
                // It has been parked throughout.
                return Some(Self { parks, reading: None, is_of_one_moment: true });
            }
            let reading = worker.thread.and_then(system::read);
            let after = worker.history.read()?;
            let is_of_one_moment = after == parks;
            if is_of_one_moment || tries == Self::TRIES {
                return Some(Self { parks: after, reading, is_of_one_moment });
            }
            tries += 1;
        }
    }
}

/// A worker as the looks have seen it.
#[derive(Debug)]
struct Seen {
    /// The worker.
    worker: Arc<Worker>,
    /// The moment of the last look.
    at: u64,
    /// Its parks at the last look.
    parks: Parks,
    /// The account by the kernel's counts, once they could be read.
    account: Option<Account>,
    /// The sums of the switch records until the last look.
    off: OffProcessor,
    /// The time awake that lasted at the last look, as far as its records were read.
    open: OpenPeriod,
    /// Its state at the last look.
    state: State,
    /// The means of the last look.
    means: Means,
    /// The task that was polled at the last look.
    task: Option<Task>,
    /// The number of polls at the last sample.
    polls: u64,
    /// The number of parks at the last sample.
    parks_before: u64,
    /// The time parked since the last sample.
    parked: u64,
    /// The parts of the time awake since the last sample.
    parts: Split,
    /// The parts since the last sample and the last park.
    since_park: Split,
    /// The place where it was last seen blocked since the last sample and the last park.
    blocked_in: Option<BlockedIn>,
    /// The stall that lasts, as of the last look, with its parts since the last sample.
    current: Option<Stall>,
    /// The stalls that have ended since the last sample.
    ended: Vec<Stall>,
}

/// The part of a time awake of which the records have been read.
#[derive(Clone, Copy, Debug, Default)]
struct OpenPeriod {
    /// The number of parks before it.
    parks: u64,
    /// The first record that has not been read.
    next: u64,
    /// The sum of those that have been read.
    off: OffProcessor,
}

impl Sampler {
    /// Begins with the workers of now.
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        let mut sampler = Self { registry, seen: BTreeMap::new(), since: monotonic() };
        sampler.look();
        // What they did before is not of a sample.
        sampler.seen.values_mut().for_each(|seen| _ = seen.sample());
        sampler
    }

    /// Looks at each worker. Costs a few openings of files in `/proc` for each worker that is not
    /// parked.
    pub fn look(&mut self) {
        let workers = self.registry.workers();
        let alive = |number: &u64| workers.iter().any(|worker| worker.number == *number);
        self.seen.retain(|number, _| alive(number));
        for worker in workers {
            let seen = self.seen.get_mut(&worker.number);
            // The worker was writing at each try. The next look sees it.
            let Some(view) = View::of(&worker, seen.as_ref().map(|seen| seen.parks)) else {
                continue;
            };
            match seen {
                Some(seen) => seen.look(view, self.registry.threshold),
                None => _ = self.seen.insert(worker.number, Seen::new(worker, view)),
            }
        }
    }

    /// Looks at each worker, and returns what was seen since the last sample. Costs what
    /// [`look`](Self::look) does.
    pub fn sample(&mut self) -> Sample {
        self.look();
        let now = monotonic();
        let interval = Duration::from_nanos(now - self.since);
        self.since = now;
        Sample { interval, workers: self.seen.values_mut().map(Seen::sample).collect() }
    }
}

impl Seen {
    /// Looks at a worker for the first time.
    fn new(worker: Arc<Worker>, view: View) -> Self {
        let View { parks, reading, .. } = view;
        let at = reading.map_or_else(monotonic, |reading| reading.at);
        let mut seen = Self {
            at,
            parks,
            account: reading.map(|reading| Account::new(reading, parks.awake_until(at))),
            off: OffProcessor::default(),
            open: OpenPeriod::default(),
            state: State::Awake,
            means: if reading.is_some() { Means::Counts } else { Means::Nothing },
            task: None,
            polls: 0,
            parks_before: 0,
            parked: 0,
            parts: Split::default(),
            since_park: Split::default(),
            blocked_in: None,
            current: None,
            ended: Vec::new(),
            worker,
        };
        if let Some(off) = seen.off_processor(parks, at) {
            seen.off = off;
            seen.means = Means::SwitchRecords;
        }
        seen.state = seen.state_of(view);
        seen
    }

    /// Looks at it again.
    fn look(&mut self, view: View, threshold: u64) {
        let View { parks, reading, .. } = view;
        if parks.is_parked == 1 && parks == self.parks {
            let now = monotonic();
            self.parked += now.saturating_sub(self.at);
            self.at = now;
            return;
        }
        let now = reading.map_or_else(monotonic, |reading| reading.at);
        let split = self.split(parks, reading, now);
        let awake = parks.awake_until(now).saturating_sub(self.parks.awake_until(self.at));
        self.parked += now.saturating_sub(self.at).saturating_sub(awake);
        self.parts.add(split);
        self.state = self.state_of(view);
        self.task = self.worker.polls.read().1;
        let awake_for = if self.worker.tells_parks { parks.awake_for(now) } else { None };
        // A change in between, or parked now: what lasted is over.
        if awake_for.is_none() || self.has_parked(parks) {
            self.since_park = Split::default();
            self.blocked_in = None;
            if let Some(stall) = self.current.take() {
                self.ended.push(Stall { is_over: true, ..stall });
            }
        } else {
            self.since_park.add(split);
        }
        if let State::Blocked(place) = self.state
            // It may have gone on before its system call was read.
            && (place != BlockedIn::Unknown || self.blocked_in.is_none())
        {
            self.blocked_in = Some(place);
        }
        if let Some(awake) = awake_for.filter(|&awake| awake >= threshold) {
            // Of a time awake that has just been seen first, nothing is known yet.
            if self.since_park.total() > 0 || self.means == Means::Nothing {
                self.current = Some(self.stall(awake));
            }
        }
        self.parks = parks;
        self.at = now;
    }

    /// Returns the parts of the time awake since the last look.
    fn split(&mut self, parks: Parks, reading: Option<Reading>, now: u64) -> Split {
        let awake = parks.awake_until(now);
        let counted = match (&mut self.account, reading) {
            (Some(account), Some(reading)) => Some(account.advance(reading, awake)),
            (account, Some(reading)) => {
                *account = Some(Account::new(reading, awake));
                None
            }
            (_, None) => None,
        };
        let Some(off) = self.off_processor(parks, now) else {
            self.means = if counted.is_some() { Means::Counts } else { Means::Nothing };
            return counted.unwrap_or_default();
        };
        let before = std::mem::replace(&mut self.off, off);
        if off.lost > before.lost && counted.is_some() {
            self.means = Means::Counts;
            return counted.unwrap_or_default();
        }
        self.means = Means::SwitchRecords;
        let awake = awake.saturating_sub(self.parks.awake_until(self.at));
        let blocked = off.blocked.saturating_sub(before.blocked).min(awake);
        let preempted = off.preempted.saturating_sub(before.preempted).min(awake - blocked);
        let off = blocked + preempted;
        // A thread that has been woken and has no processor yet is still blocked by its records.
        // The counts know better. Where it parked since, they have its waits after parks in them.
        let ready = match counted {
            Some(counted) if !self.has_parked(parks) => counted.ready.clamp(preempted, off),
            _ => preempted,
        };
        let blocked = off - ready;
        Split { running: awake - off, ready, blocked }
    }

    /// Returns true if it is parked, or has parked since the last look.
    fn has_parked(&self, parks: Parks) -> bool {
        parks.is_parked == 1 || parks.changed_at != self.parks.changed_at
    }

    /// Returns the sums of the switch records of all time awake, if there are any.
    fn off_processor(&mut self, parks: Parks, now: u64) -> Option<OffProcessor> {
        let ring = self.worker.records()?;
        let mut sum =
            OffProcessor { blocked: parks.blocked, preempted: parks.preempted, lost: parks.lost };
        if parks.is_parked == 1 {
            return Some(sum);
        }
        // The first records of this time awake tell it from another: they are never the same.
        if self.open.parks != parks.parks || self.open.next < parks.first_record {
            self.open = OpenPeriod {
                parks: parks.parks,
                next: parks.first_record,
                off: OffProcessor::default(),
            };
        }
        let end = ring.count();
        let (part, next) = OffProcessor::between(ring, self.open.next, end);
        self.open.off.add(part);
        self.open.next = next;
        sum.add(self.open.off);
        if next < end {
            sum.add(OffProcessor::open(ring, next, now));
        }
        Some(sum)
    }

    /// Returns its state at a look.
    fn state_of(&self, view: View) -> State {
        if view.parks.is_parked == 1 {
            return State::Parked;
        }
        if !view.is_of_one_moment {
            return State::Awake;
        }
        let place = || self.worker.thread.map_or(BlockedIn::Unknown, system::blocked_in);
        let activity = view.reading.map(|reading| reading.activity);
        match (activity, self.worker.records().map(Ring::presence)) {
            (Some(Activity::Running), _) | (None, Some(Presence::Running)) => State::Running,
            (Some(Activity::Ready), _) | (None, Some(Presence::Preempted)) => State::Ready,
            (Some(Activity::Blocked), _) | (None, Some(Presence::Blocked)) => {
                State::Blocked(place())
            }
            (None, Some(Presence::Unknown) | None) => State::Awake,
        }
    }

    /// Returns the stall of a worker that has been awake for so long.
    fn stall(&self, awake: u64) -> Stall {
        let parts = parts_of(self.since_park);
        Stall {
            cause: Cause::of(parts),
            awake: Duration::from_nanos(awake),
            parts,
            blocked_in: self.blocked_in,
            task: self.task,
            is_over: false,
        }
    }

    /// Returns what was seen since the last sample, and begins anew.
    fn sample(&mut self) -> WorkerSample {
        let worker = &self.worker;
        let polls = worker.polls.read().0;
        let awake = if worker.tells_parks { self.parks.awake_for(self.at) } else { None };
        let mut stalls = std::mem::take(&mut self.ended);
        stalls.extend(self.current);
        if let Some(current) = &mut self.current {
            // If it ends before the next look, it is told once more, as over.
            current.parts = Parts::default();
        }
        self.since_park = Split::default();
        self.blocked_in = None;
        WorkerSample {
            pool: worker.pool,
            index: worker.index,
            name: worker.name.clone(),
            thread: worker.thread,
            state: self.state,
            awake: awake.map(Duration::from_nanos),
            parked: Duration::from_nanos(std::mem::take(&mut self.parked)),
            parts: parts_of(std::mem::take(&mut self.parts)),
            parks: self.parks.parks - std::mem::replace(&mut self.parks_before, self.parks.parks),
            polls: polls - std::mem::replace(&mut self.polls, polls),
            task: self.task,
            means: self.means,
            stalls,
        }
    }
}

/// Returns the parts for users.
fn parts_of(split: Split) -> Parts {
    Parts {
        running: Duration::from_nanos(split.running),
        ready: Duration::from_nanos(split.ready),
        blocked: Duration::from_nanos(split.blocked),
    }
}
