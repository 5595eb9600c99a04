//! Recordings put together: the waits of each lock, from all files, in nanoseconds.
//!
//! Files differ in their units, because C is measured anew in every run. They share the unit of
//! lengths.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use stanchion_competitive::waits::{ARRIVALS, Distribution, Recording};
use stanchion_formulas::competitive::{self, CompetitiveError};

/// The reason why a recording cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },

    /// A file is no recording.
    #[error("{}: {source}", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// The mistake in the file.
        source: stanchion_competitive::waits::FileError,
    },
}

/// The recordings to be judged, together.
#[derive(Debug)]
pub struct Pool {
    /// The programs recorded, each once.
    pub programs: Vec<String>,
    /// C in nanoseconds: the mean over the waits.
    pub cost: f64,
    /// Nanoseconds recorded, of all files together.
    pub elapsed: u64,
    /// Locks that were recorded without a name.
    pub overflow: u64,
    /// The locks, the one with the most time waited first.
    pub locks: Vec<Lock>,
}

/// The waits of the locks of one name.
#[derive(Debug)]
pub struct Lock {
    /// The lock's name.
    pub name: String,
    /// The program that it is of.
    pub program: String,
    /// The lock's name in that program.
    pub own_name: String,
    /// The mutexes of that program, as [`Recording::mutexes`] has them in the first file.
    pub mutexes: Option<String>,
    /// The waits, one distribution from each file that has the lock.
    pub recorded: Vec<Distribution>,
}

/// Reads the files. Stops at the first that cannot be read.
pub fn load(files: &[PathBuf]) -> Result<Vec<Recording>, Error> {
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Recording, Error> {
    let bytes =
        fs::read(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
    Recording::from_json(&bytes)
        .map_err(|source| Error::NotARecording { path: path.to_owned(), source })
}

impl Pool {
    /// Puts `recordings` together. Locks of one name are one lock. If they are of different
    /// programs, they are kept apart, and their names say which program is meant.
    pub fn of(recordings: Vec<Recording>) -> Self {
        let mut programs: Vec<String> =
            recordings.iter().map(|recording| recording.program.clone()).collect();
        programs.sort();
        programs.dedup();
        let mut locks: BTreeMap<String, Lock> = BTreeMap::new();
        let (mut costs, mut waits, mut elapsed, mut overflow) = (0.0, 0.0, 0_u64, 0_u64);
        for recording in recordings {
            let count = recording.all().count() as f64;
            costs += recording.cost_ns as f64 * count;
            waits += count;
            elapsed = elapsed.saturating_add(recording.elapsed_ns);
            overflow = overflow.saturating_add(recording.overflow);
            for (name, recorded) in recording.locks {
                if recorded.count() == 0 {
                    continue;
                }
                let own_name = name;
                let name = match programs.len() {
                    1 => own_name.clone(),
                    _ => format!("{}: {own_name}", recording.program),
                };
                let lock = locks.entry(name.clone()).or_insert_with(|| Lock {
                    name,
                    program: recording.program.clone(),
                    own_name,
                    mutexes: recording.mutexes.clone(),
                    recorded: Vec::new(),
                });
                lock.recorded.push(recorded);
            }
        }
        let mut locks: Vec<Lock> = locks.into_values().collect();
        locks.sort_by_key(|lock| std::cmp::Reverse(lock.total()));
        Self { programs, cost: costs / waits, elapsed, overflow, locks }
    }

    /// Returns the number of waits of all locks.
    pub fn waits(&self) -> u64 {
        self.locks.iter().map(Lock::count).sum()
    }

    /// Returns the waits of all locks by the number of other waiters.
    pub fn arrivals(&self) -> [u64; ARRIVALS] {
        let of = |others: usize| self.locks.iter().map(|lock| lock.arrivals()[others]).sum();
        std::array::from_fn(of)
    }
}

impl Lock {
    /// Returns the number of waits.
    pub fn count(&self) -> u64 {
        self.recorded.iter().map(Distribution::count).sum()
    }

    /// Returns the number of waits that blocked.
    pub fn blocked(&self) -> u64 {
        self.recorded.iter().map(Distribution::blocked).sum()
    }

    /// Returns the sum of the waits, in nanoseconds.
    pub fn total(&self) -> u128 {
        self.recorded.iter().map(|recorded| u128::from(recorded.total_ns())).sum()
    }

    /// Returns the longest wait, in nanoseconds.
    pub fn longest(&self) -> u64 {
        self.recorded.iter().map(Distribution::max_ns).max().unwrap_or(0)
    }

    /// Returns the lock's waits by the number of other waiters.
    pub fn arrivals(&self) -> [u64; ARRIVALS] {
        let of =
            |others: usize| self.recorded.iter().map(|recorded| recorded.arrivals()[others]).sum();
        std::array::from_fn(of)
    }

    /// Returns the waits as lengths in nanoseconds with their weights. A bucket stands for its end,
    /// as in section 2.4.
    pub fn waits(&self) -> Result<competitive::Distribution, CompetitiveError> {
        let points: Vec<(f64, f64)> = self
            .recorded
            .iter()
            .flat_map(Distribution::points)
            .map(|(length, count)| (length as f64, count as f64))
            .collect();
        competitive::Distribution::from_points(&points)
    }

    /// Returns a time that a share `q` of the waits did not exceed, in nanoseconds.
    pub fn quantile(&self, q: f64) -> u64 {
        let mut points: Vec<(u64, u64)> =
            self.recorded.iter().flat_map(Distribution::points).collect();
        points.sort_unstable();
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let mut below = 0;
        let reached = points.iter().find(|&&(_, count)| {
            below += count;
            below >= rank
        });
        reached.map_or(self.longest(), |point| point.0)
    }

    /// Returns the numbers of waits that were spun through and that blocked, in `bins` of `width`
    /// nanoseconds. The last bin has all longer ones. If a bucket lies in several bins, its waits
    /// are spread over them evenly.
    pub fn bins(&self, width: f64, bins: usize) -> [Vec<f64>; 2] {
        let mut counts = vec![[0.0; 2]; bins];
        for recorded in &self.recorded {
            for bucket in recorded.buckets() {
                // A bucket is open below: the one from 401 to 800 ns has the waits above 400. A bin
                // is open below too.
                let start = bucket.from_ns.saturating_sub(1) as f64;
                let end = bucket.to_ns.min(recorded.max_ns()).max(1) as f64;
                let first = ((start / width).floor() as usize).min(bins - 1);
                let last =
                    ((end / width).ceil() as usize).clamp(first + 1, bins.max(first + 1)) - 1;
                for (bin, count) in (first..).zip(&mut counts[first..=last]) {
                    let from = start.max(bin as f64 * width);
                    let to = if bin + 1 == bins { end } else { end.min((bin + 1) as f64 * width) };
                    let share =
                        if first == last { 1.0 } else { (to - from).max(0.0) / (end - start) };
                    count[0] += share * bucket.spun as f64;
                    count[1] += share * bucket.blocked as f64;
                }
            }
        }
        [0, 1].map(|side| counts.iter().map(|count| count[side]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_competitive::waits::Observation;

    fn recording(program: &str, unit_ns: u64, lengths: &[u64]) -> Recording {
        let mut waits = Distribution::new(unit_ns);
        for &length_ns in lengths {
            waits.add(&Observation { length_ns, ..Observation::default() });
        }
        Recording {
            program: program.to_owned(),
            mutexes: None,
            cost_ns: unit_ns * 100 / 8,
            unit_ns,
            elapsed_ns: 1_000,
            locks: vec![("queue".to_owned(), waits)],
            overflow: 0,
        }
    }

    #[test]
    fn files_of_different_units_are_put_together() {
        let pool = Pool::of(vec![
            recording("one", 400, &[1, 1_000, 1_000]),
            recording("one", 800, &[1_500]),
        ]);
        assert_eq!(pool.locks.len(), 1);
        assert_eq!((pool.waits(), pool.elapsed), (4, 2_000));
        assert_eq!(pool.cost, (3.0 * 5_000.0 + 10_000.0) / 4.0);
        let waits = pool.locks[0].waits().unwrap();
        assert_eq!(waits.points(), [(400.0, 1.0), (1_000.0, 2.0), (1_500.0, 1.0)]);
        assert_eq!(pool.locks[0].quantile(0.75), 1_000);
        assert_eq!(pool.locks[0].quantile(1.0), 1_500);
    }

    #[test]
    fn locks_of_different_programs_stay_apart() {
        let pool = Pool::of(vec![recording("one", 400, &[1]), recording("two", 400, &[1])]);
        let names: Vec<_> = pool.locks.iter().map(|lock| lock.name.as_str()).collect();
        assert_eq!(names, ["one: queue", "two: queue"]);
    }

    #[test]
    fn bins_hold_every_wait() {
        let lengths: Vec<u64> = (0..5_000).map(|index| index * index % 200_000).collect();
        let pool = Pool::of(vec![recording("one", 400, &lengths), recording("one", 312, &lengths)]);
        for width in [200.0, 312.0, 400.0, 555.5] {
            let [spun, blocked] = pool.locks[0].bins(width, 64);
            assert!((spun.iter().sum::<f64>() - 10_000.0).abs() < 1e-6, "{width}");
            assert!(blocked.iter().all(|&count| count == 0.0));
        }
        // Bins of the recorded width are the recorded counts.
        let alone = Pool::of(vec![recording("one", 400, &lengths)]);
        let [spun, _] = alone.locks[0].bins(400.0, 63);
        for (bin, &count) in spun.iter().enumerate().take(62) {
            let least = if bin == 0 { 0 } else { bin as u64 * 400 + 1 };
            let counted = lengths
                .iter()
                .filter(|&&length| (least..=(bin as u64 + 1) * 400).contains(&length));
            assert_eq!(count, counted.count() as f64, "{bin}");
        }
    }
}
