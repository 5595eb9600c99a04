//! The result of an observation, as its JSON has it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::calls;
use super::observe::{Activity, Observation, PER_ROUND, Refused, Thread};

/// The version of the JSON.
const VERSION: u32 = 1;

/// Why the observation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// Its time was over.
    Time,
    /// The user asked for it.
    Interrupt,
    /// The process ended.
    Process,
}

/// The circumstances of an observation.
pub(super) struct Frame {
    /// The number of the process.
    pub(super) process: u32,
    /// Its name.
    pub(super) name: String,
    /// The length of the observation.
    pub(super) elapsed: Duration,
    /// The time from one round to the next.
    pub(super) interval: Duration,
    /// Why it ended.
    pub(super) end: End,
    /// The processor time of this command meanwhile.
    pub(super) observer: Duration,
    /// False if the numbers of the program's system calls are not ours.
    pub(super) has_our_calls: bool,
}

/// The result of an observation.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The version of this form.
    pub(super) version: u32,
    /// The number of the process.
    pub(super) process: u32,
    /// The name of the process.
    pub(super) name: String,
    /// The length of the observation.
    pub(super) seconds: f64,
    /// Why it ended.
    pub(super) ended_by: End,
    /// The number of rounds.
    pub(super) rounds: u64,
    /// The wanted time from one round to the next.
    pub(super) interval_ms: u64,
    /// The most threads that a round reads.
    pub(super) threads_a_round: usize,
    /// The largest number of threads at once.
    pub(super) most_threads: usize,
    /// The number of readings of threads that were too many to be remembered.
    pub(super) forgotten_readings: u64,
    /// The share of a processor that this command used.
    pub(super) observer_share: f64,
    /// The threads.
    pub(super) threads: Vec<ThreadReport>,
    /// The words that threads waited for in `futex`, those with the most readings first.
    pub(super) words: Vec<Word>,
    /// Sentences on what could not be seen.
    pub(super) unseen: Vec<String>,
}

/// A thread.
#[derive(Debug, Serialize)]
pub(super) struct ThreadReport {
    /// Its number.
    pub(super) id: u32,
    /// Its name.
    pub(super) name: String,
    /// The letter of its last state.
    pub(super) state: char,
    /// False if it ended meanwhile.
    pub(super) is_alive: bool,
    /// The number of readings.
    pub(super) readings: u64,
    /// The time from the first reading to the last.
    pub(super) seconds: f64,
    /// The share of that time on a processor.
    pub(super) running: Option<f64>,
    /// The share of that time ready to run without a processor.
    pub(super) waiting_for_processor: Option<f64>,
    /// The share of that time asleep.
    pub(super) asleep: Option<f64>,
    /// The number of switches because it waited, in that time.
    pub(super) voluntary_switches: u64,
    /// The number of switches because another thread got its processor, in that time.
    pub(super) involuntary_switches: u64,
    /// Its activity at the last reading.
    pub(super) now: String,
    /// Where it slept, the most readings first.
    pub(super) asleep_in: Vec<Sleep>,
}

/// A place where a thread slept.
#[derive(Debug, Serialize)]
pub(super) struct Sleep {
    /// The system call, or what is known in its place.
    pub(super) call: String,
    /// The address of the word, if it is a wait of `futex`.
    pub(super) word: Option<String>,
    /// True if the wait of `futex` has no time limit.
    pub(super) without_limit: bool,
    /// The number of readings.
    pub(super) readings: u64,
    /// Their share of all readings of the thread.
    pub(super) share: f64,
}

/// A word that threads waited for.
#[derive(Debug, Serialize)]
pub(super) struct Word {
    /// Its address.
    pub(super) address: String,
    /// The number of readings.
    pub(super) readings: u64,
    /// The threads that waited for it.
    pub(super) threads: Vec<u32>,
    /// Those of them that did so when last read.
    pub(super) now: Vec<u32>,
}

impl Report {
    pub(super) fn new(frame: Frame, seen: Observation) -> Self {
        let unseen = unseen(&frame, &seen);
        let (rounds, most, forgotten) = (seen.rounds, seen.most, seen.forgotten);
        let threads = seen.into_threads();
        let seconds = frame.elapsed.as_secs_f64();
        Self {
            version: VERSION,
            process: frame.process,
            seconds,
            ended_by: frame.end,
            rounds,
            interval_ms: u64::try_from(frame.interval.as_millis()).unwrap_or(u64::MAX),
            threads_a_round: PER_ROUND,
            most_threads: most,
            forgotten_readings: forgotten,
            observer_share: frame.observer.as_secs_f64() / seconds.max(f64::MIN_POSITIVE),
            words: words(&threads),
            threads: threads.iter().map(|thread| of_thread(thread, &frame)).collect(),
            unseen,
            name: frame.name,
        }
    }
}

fn of_thread(thread: &Thread, frame: &Frame) -> ThreadReport {
    let shares = thread.shares();
    let (first, last) = (thread.first.status, thread.last.status);
    let mut asleep_in: Vec<Sleep> = thread
        .activities
        .iter()
        .filter(|(activity, _)| **activity != Activity::Running)
        .map(|(activity, &readings)| Sleep {
            call: words_for(activity, frame),
            word: word(activity).map(hexadecimal),
            without_limit: matches!(activity, Activity::Futex { without_limit: true, .. }),
            readings,
            share: readings as f64 / thread.readings as f64,
        })
        .collect();
    asleep_in.sort_by_key(|sleep| std::cmp::Reverse(sleep.readings));
    ThreadReport {
        id: thread.id,
        name: thread.stat.name.clone(),
        state: thread.stat.state,
        is_alive: thread.is_alive && frame.end != End::Process,
        readings: thread.readings,
        seconds: thread.span().as_secs_f64(),
        running: shares.map(|shares| shares.0),
        waiting_for_processor: shares.map(|shares| shares.1),
        asleep: shares.map(|(running, ready)| (1.0 - running - ready).max(0.0)),
        voluntary_switches: last.voluntary.saturating_sub(first.voluntary),
        involuntary_switches: last.involuntary.saturating_sub(first.involuntary),
        now: words_for(&thread.now, frame),
        asleep_in,
    }
}

fn hexadecimal(word: u64) -> String {
    format!("{word:#x}")
}

/// Returns the address that a thread waits for.
fn word(activity: &Activity) -> Option<u64> {
    match activity {
        Activity::Futex { word, .. } => Some(*word),
        _ => None,
    }
}

fn words_for(activity: &Activity, frame: &Frame) -> String {
    match activity {
        Activity::Running => "running".to_owned(),
        Activity::Futex { .. } if frame.has_our_calls => "futex".to_owned(),
        Activity::Futex { .. } => "system call".to_owned(),
        Activity::Call(number) => match calls::name(*number).filter(|_| frame.has_our_calls) {
            Some(name) => name.to_owned(),
            None => format!("system call {number}"),
        },
        Activity::KernelFunction(name) => format!("the kernel's {name}"),
        Activity::Outside => "no system call (a page fault, or stopped)".to_owned(),
        Activity::Asleep => "an unknown place".to_owned(),
        Activity::Other => "other places".to_owned(),
    }
}

/// Returns the words that threads waited for, those with the most readings first.
fn words(threads: &[Thread]) -> Vec<Word> {
    let mut all = BTreeMap::<u64, (u64, BTreeSet<u32>, BTreeSet<u32>)>::new();
    for thread in threads {
        for (activity, readings) in &thread.activities {
            let Some(word) = word(activity) else { continue };
            let entry = all.entry(word).or_default();
            entry.0 += readings;
            entry.1.insert(thread.id);
            if thread.is_alive && thread.now == *activity {
                entry.2.insert(thread.id);
            }
        }
    }
    let mut words: Vec<Word> = all
        .into_iter()
        .map(|(address, (readings, threads, now))| Word {
            address: hexadecimal(address),
            readings,
            threads: threads.into_iter().collect(),
            now: now.into_iter().collect(),
        })
        .collect();
    words.sort_by_key(|word| std::cmp::Reverse((word.threads.len() > 1, word.readings)));
    words
}

/// Returns the advice to a user that may not trace the process.
fn remedy() -> &'static str {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } == 0 {
        "Give it the capability CAP_SYS_PTRACE (in a container `--cap-add SYS_PTRACE`), and run it in the user namespace of the process."
    } else {
        "Run this command as root, or allow it with `sysctl kernel.yama.ptrace_scope=0`."
    }
}

/// Returns sentences on what could not be seen, and on how to see more of it.
fn unseen(frame: &Frame, seen: &Observation) -> Vec<String> {
    let mut unseen = vec![
        "Call paths and the names of locks cannot be seen from outside: `stanchion record -- COMMAND` records them from the \
         program's start. Waits between two readings are seen in the number of voluntary switches only."
            .to_owned(),
    ];
    let process = frame.process;
    let fallback = "So instead of system calls and addresses it says in which function of the kernel a thread sleeps, if the kernel tells that.";
    match seen.refused {
        Some(Refused::User) => unseen.push(format!(
            "The system calls of the process {process} cannot be read: it runs as another user, or has more rights than this command. Run this \
             command as root. {fallback}"
        )),
        Some(Refused::Permission) => unseen.push(format!(
            "The kernel does not let this command read the system calls of the process {process}, because that takes the permission to trace it. \
             {} {fallback}",
            remedy()
        )),
        Some(Refused::Missing) => {
            unseen.push(format!("This kernel does not tell the system calls of threads. {fallback}"));
        }
        None => {}
    }
    if seen.is_without_times {
        unseen.push(
            "This kernel does not count the times of threads (no schedstat): there are readings only."
                .to_owned(),
        );
    }
    if !frame.has_our_calls {
        unseen.push(
            "The program is for another kind of processor than this command (as 32 bits on 64), so its system calls have only numbers."
                .to_owned(),
        );
    }
    if seen.most > PER_ROUND {
        unseen.push(format!(
            "The process had up to {} threads. Each round read {PER_ROUND} of them, in turn.",
            seen.most
        ));
    }
    if seen.forgotten > 0 {
        unseen.push(format!(
            "There were too many threads to remember: {} readings of later ones are left out.",
            seen.forgotten
        ));
    }
    unseen
}
