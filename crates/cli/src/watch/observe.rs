//! Observes the threads of a process in rounds.
//!
//! A round reads the files of at most [`PER_ROUND`] threads. A process with more gets a turn of
//! several rounds. The times of a thread are exact between its first and its last reading, because
//! the kernel counts them. Where a thread sleeps is known at the moments of the readings only.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use super::calls;
use super::procfs::{Call, Process, Stat, Status, Times};

/// The most threads that a round reads.
pub(super) const PER_ROUND: usize = 128;
/// The most threads that are remembered. Later ones are only counted.
const REMEMBERED: usize = 20_000;
/// The most activities that are remembered of a thread. Later ones are added up.
const ACTIVITIES: usize = 32;
/// The number of readings of a thread from one of its name, state and switches to the next.
const SLOW: u64 = 10;
/// The number of rounds from one list of a large process's threads to the next.
const LISTING: u64 = 10;

/// An activity of a thread, at the moment of a reading.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Activity {
    /// It runs, or is ready to.
    Running,
    /// It is in this system call.
    Call(i64),
    /// It waits in `futex`.
    Futex {
        /// The address of the word.
        word: u64,
        /// True if the wait has no time limit.
        without_limit: bool,
    },
    /// It is in this function of the kernel. The system call cannot be read.
    KernelFunction(String),
    /// It is blocked outside a system call, as in a page fault.
    Outside,
    /// It sleeps in an unknown place.
    Asleep,
    /// It is one of the activities beyond the first [`ACTIVITIES`].
    Other,
}

/// The counts that the kernel keeps of a thread, and the moment at which they were read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// The moment.
    pub(super) at: Instant,
    /// Its times, if the kernel keeps them.
    pub(super) times: Option<Times>,
    /// Its switches.
    pub(super) status: Status,
}

/// A thread that was seen.
#[derive(Debug)]
pub(super) struct Thread {
    /// Its number.
    pub(super) id: u32,
    /// The last content of `stat`.
    pub(super) stat: Stat,
    /// Its first reading.
    pub(super) first: Reading,
    /// Its last reading.
    pub(super) last: Reading,
    /// The number of readings.
    pub(super) readings: u64,
    /// The number of readings by activity.
    pub(super) activities: BTreeMap<Activity, u64>,
    /// Its activity at the last reading.
    pub(super) now: Activity,
    /// False once it has ended.
    pub(super) is_alive: bool,
}

/// Why the system call of a thread could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The file belongs to another user.
    User,
    /// The kernel does not let this process look (Yama, or the capability is missing).
    Permission,
    /// The kernel has no such file.
    Missing,
}

/// Why the process cannot be observed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// The threads of a process as they were seen so far.
#[derive(Debug)]
pub(super) struct Observation {
    /// The process.
    process: Process,
    /// The time at which its first thread began. It differs if the number was used again.
    began: u64,
    /// The threads of the last list, the smallest first.
    listed: Vec<u32>,
    /// The number of threads in `listed` that this turn has read.
    turn: usize,
    /// The threads that were seen and have not ended, by number.
    alive: BTreeMap<u32, Thread>,
    /// The threads that have ended.
    ended: Vec<Thread>,
    /// The number of rounds.
    pub(super) rounds: u64,
    /// The number of threads that were not remembered.
    pub(super) forgotten: u64,
    /// The largest number of threads at once.
    pub(super) most: usize,
    /// The reason why a system call could not be read, if there was one.
    pub(super) refused: Option<Refused>,
    /// True if some times could not be read.
    pub(super) is_without_times: bool,
}

impl Observation {
    /// Begins to observe a process, of which `began` is the time of its first thread.
    pub(super) fn new(process: Process, began: u64) -> Self {
        Self {
            process,
            began,
            listed: Vec::new(),
            turn: 0,
            alive: BTreeMap::new(),
            ended: Vec::new(),
            rounds: 0,
            forgotten: 0,
            most: 0,
            refused: None,
            is_without_times: false,
        }
    }

    /// Reads all threads if they are at most [`PER_ROUND`], else the next so many of the turn. The
    /// last round also reads names, states and switches.
    pub(super) fn round(&mut self, is_last: bool) -> Result<(), Gone> {
        if self.listed.len() <= PER_ROUND || self.rounds.is_multiple_of(LISTING) {
            self.list()?;
        }
        self.rounds += 1;
        if self.turn >= self.listed.len() {
            self.turn = 0;
        }
        let end = self.listed.len().min(self.turn + PER_ROUND);
        for index in self.turn..end {
            self.look(self.listed[index], is_last);
        }
        self.turn = end;
        Ok(())
    }

    /// Returns all threads that were seen, by number.
    pub(super) fn into_threads(self) -> Vec<Thread> {
        let mut threads = self.ended;
        threads.extend(self.alive.into_values());
        threads.sort_by_key(|thread| thread.id);
        threads
    }

    /// Reads which threads there are.
    fn list(&mut self) -> Result<(), Gone> {
        let listed = self.process.threads().map_err(|_| Gone)?;
        let first = self.process.stat(self.process.id).map_err(|_| Gone)?;
        let is_zombie = matches!(first.state, 'Z' | 'X') && listed.len() <= 1;
        if first.began != self.began || is_zombie {
            return Err(Gone);
        }
        // The turn goes on behind the threads that it has read.
        let last = self.turn.checked_sub(1).and_then(|index| self.listed.get(index));
        self.turn = last.map_or(0, |&last| listed.partition_point(|&thread| thread <= last));
        let has_ended = |thread: &u32| listed.binary_search(thread).is_err();
        let ended: Vec<u32> = self.alive.keys().copied().filter(has_ended).collect();
        ended.into_iter().for_each(|thread| self.end(thread));
        self.most = self.most.max(listed.len());
        self.listed = listed;
        Ok(())
    }

    /// Moves a thread to those that have ended.
    fn end(&mut self, thread: u32) {
        if let Some(mut thread) = self.alive.remove(&thread) {
            thread.is_alive = false;
            self.ended.push(thread);
        }
    }

    /// Reads the files of a thread. One that has ended meanwhile is missing in the next list.
    fn look(&mut self, id: u32, is_last: bool) {
        let known = self.alive.get(&id);
        let is_slow = known.is_none_or(|known| is_last || known.readings.is_multiple_of(SLOW));
        // The system call comes first, so that what follows does not delay it.
        let call = self.process.call(id);
        if let Err(error) = &call
            && error.kind() != io::ErrorKind::InvalidData
            && error.raw_os_error() != Some(libc::ESRCH)
        {
            match (error.raw_os_error(), self.process.stat(id).is_ok()) {
                (Some(libc::EACCES), true) => self.refused = Some(Refused::User),
                (Some(libc::EPERM), true) => self.refused = Some(Refused::Permission),
                (Some(libc::ENOENT), true) => self.refused = Some(Refused::Missing),
                // The thread has ended.
                _ => {}
            }
        }
        let stat = (is_slow || call.is_err()).then(|| self.process.stat(id));
        let Ok(stat) = stat.transpose() else { return };
        let activity = match call {
            Ok(Call::Running) => Activity::Running,
            Ok(Call::Outside) => Activity::Outside,
            Ok(Call::Inside { number, arguments }) => match calls::futex_word(number, &arguments) {
                Some((word, without_limit)) => Activity::Futex { word, without_limit },
                None => Activity::Call(number),
            },
            Err(_) if stat.as_ref().is_some_and(|stat| stat.state == 'R') => Activity::Running,
            Err(_) => {
                self.process.kernel_function(id).map_or(Activity::Asleep, Activity::KernelFunction)
            }
        };
        let times = self.process.times(id).ok();
        // A thread that ends between the readings has no times any more.
        self.is_without_times |= times.is_none() && self.process.stat(id).is_ok();
        let status = is_slow.then(|| self.process.status(id).ok()).flatten();
        if let (Some(known), Some(stat)) = (self.alive.get(&id), &stat)
            && known.stat.began != stat.began
        {
            // Another thread has got the number of one that has ended.
            self.end(id);
        }
        let at = Instant::now();
        let has_room = self.alive.len() + self.ended.len() < REMEMBERED;
        match (self.alive.get_mut(&id), stat) {
            (Some(known), stat) => {
                known.last.at = at;
                known.last.times = times.or(known.last.times);
                known.last.status = status.unwrap_or(known.last.status);
                if let Some(stat) = stat {
                    known.stat = stat;
                }
                known.count(activity);
            }
            (None, Some(stat)) if has_room => {
                let first = Reading { at, times, status: status.unwrap_or_default() };
                let mut thread = Thread {
                    id,
                    stat,
                    first,
                    last: first,
                    readings: 0,
                    activities: BTreeMap::new(),
                    now: Activity::Asleep,
                    is_alive: true,
                };
                thread.count(activity);
                self.alive.insert(id, thread);
            }
            (None, _) => self.forgotten += 1,
        }
    }
}

impl Thread {
    /// Counts a reading.
    fn count(&mut self, activity: Activity) {
        self.readings += 1;
        self.now = activity.clone();
        let is_full = self.activities.len() >= ACTIVITIES;
        let is_new = is_full && !self.activities.contains_key(&activity);
        let activity = if is_new { Activity::Other } else { activity };
        *self.activities.entry(activity).or_insert(0) += 1;
    }

    /// Returns the time from the first to the last reading.
    pub(super) fn span(&self) -> Duration {
        self.last.at - self.first.at
    }

    /// Returns the shares of that time on a processor, and ready to run without one.
    pub(super) fn shares(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.first.times?, self.last.times?);
        let span = self.span().as_nanos() as f64;
        let share = |first: u64, last: u64| (last.saturating_sub(first) as f64 / span).min(1.0);
        let shares =
            (share(first.running_ns, last.running_ns), share(first.ready_ns, last.ready_ns));
        (span > 0.0).then_some(shares)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// A folder like `/proc` with one process, numbered 100.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("stanchion-watch-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn thread(&self, id: u32, began: u64, call: Option<&str>) {
            let path = self.0.join(format!("100/task/{id}"));
            fs::create_dir_all(&path).unwrap();
            let stat = format!("{id} (t) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {began} 0");
            fs::write(path.join("stat"), stat).unwrap();
            fs::write(path.join("wchan"), "do_wait").unwrap();
            match call {
                Some(call) => fs::write(path.join("syscall"), call).unwrap(),
                None => drop(fs::remove_file(path.join("syscall"))),
            }
        }

        fn ends(&self, id: u32) {
            fs::remove_dir_all(self.0.join(format!("100/task/{id}"))).unwrap();
        }

        fn observation(&self) -> Observation {
            Observation::new(Process::at(Path::new(&self.0), 100), 5)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const FUTEX: &str = "98 0x10 0x80 0x2 0x0 0x0 0x0 0x0 0x0";

    #[test]
    fn each_round_reads_a_bounded_number_and_each_turn_all() {
        let folder = Folder::new("many");
        let number = 10 * PER_ROUND as u32 - 7;
        (100..100 + number).for_each(|id| folder.thread(id, 5, Some("running")));
        let mut seen = folder.observation();
        let mut before = 0;
        for _ in 0..10 {
            seen.round(false).unwrap();
            let readings: u64 = seen.alive.values().map(|thread| thread.readings).sum();
            assert!(readings - before <= PER_ROUND as u64);
            before = readings;
        }
        assert_eq!(seen.most, number as usize);
        let threads = seen.into_threads();
        assert_eq!(threads.len(), number as usize);
        assert!(threads.iter().all(|thread| thread.readings == 1), "each had one turn");
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread() {
        let folder = Folder::new("again");
        folder.thread(100, 5, Some("running"));
        folder.thread(101, 6, Some("running"));
        let mut seen = folder.observation();
        seen.round(false).unwrap();
        folder.thread(101, 7, Some("-1 0x0 0x0"));
        seen.round(true).unwrap();
        folder.ends(101);
        seen.round(true).unwrap();
        let threads = seen.into_threads();
        let found: Vec<_> = threads.iter().map(|t| (t.id, t.stat.began, t.is_alive)).collect();
        assert_eq!(found, [(100, 5, true), (101, 6, false), (101, 7, false)]);
        assert_eq!(threads[2].now, Activity::Outside);
    }

    #[test]
    fn the_end_of_the_process_is_noticed() {
        let folder = Folder::new("end");
        folder.thread(100, 5, Some("running"));
        let mut seen = folder.observation();
        seen.round(false).unwrap();
        // Another process has its number now.
        folder.thread(100, 6, Some("running"));
        assert_eq!(seen.round(false), Err(Gone));
        folder.ends(100);
        assert_eq!(seen.round(false), Err(Gone));
        assert_eq!(seen.into_threads()[0].readings, 1);
    }

    #[test]
    fn without_the_system_call_the_kernel_s_function_is_read() {
        let folder = Folder::new("refused");
        folder.thread(100, 5, None);
        let mut seen = folder.observation();
        seen.round(false).unwrap();
        assert_eq!(seen.refused, Some(Refused::Missing));
        let threads = seen.into_threads();
        assert_eq!(threads[0].now, Activity::KernelFunction("do_wait".to_owned()));
        assert_eq!(threads[0].shares(), None, "there is no schedstat");
    }

    #[test]
    fn activities_are_bounded() {
        let folder = Folder::new("words");
        folder.thread(100, 5, Some(FUTEX));
        let mut seen = folder.observation();
        for round in 0..2 * ACTIVITIES as u64 {
            folder.thread(100, 5, Some(&FUTEX.replace("98 ", &format!("{} ", 1000 + round))));
            seen.round(false).unwrap();
        }
        let activities = &seen.into_threads()[0].activities;
        assert_eq!(activities.len(), ACTIVITIES + 1);
        assert_eq!(activities[&Activity::Other], ACTIVITIES as u64);
    }
}
