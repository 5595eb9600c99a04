//! A contest: all threads take the lock over and over until a shared counter has its last value.
//! This is the paper's figure 4.1.
//!
//! In virtual time nothing disturbs a measurement. So waits are timed in the same run, and one run
//! is enough.

use lock_api::RawMutex;
use stanchion_simulator::{
    Accesses, Activity, Failure, Machine, Rows, Run, Simulation, Time, inside,
};

use super::shared::{Private, Shared, turn};
use stanchion_study::measure::jain;
use stanchion_study::outcome::Drawn;
use stanchion_study::simulation::{simulation, together};

/// The settings of a contest.
#[derive(Clone, Copy, Debug)]
pub struct Contest {
    /// The number of threads.
    pub threads: usize,
    /// The last value of the counter.
    pub increments: u64,
    /// Turns of [`Shared::work`] in each critical section, beside the increment.
    pub turns: u32,
    /// The seed of the run's random numbers.
    pub seed: u64,
}

/// The result of a contest.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The number of increments.
    pub increments: u64,
    /// The time from the first thread's start until the counter had its last value.
    pub elapsed: Time,
    /// Jain's index of the increments of each thread: 1 if all threads have the same number.
    pub fairness: f64,
    /// Longest time from asking for the lock to having it.
    pub longest_wait: Time,
    /// The memory accesses of all threads.
    pub accesses: Accesses,
    /// Share of the elapsed time in which the bus, or the interconnect in its place, was occupied.
    pub bus: f64,
    /// Share of the threads' time that was spent waiting, either spinning in their own caches or
    /// for the memory.
    pub waiting: f64,
    /// The total time for which the lock was held.
    pub held: Time,
}

impl Standing {
    /// Returns the elapsed nanoseconds for each increment, all threads together.
    pub fn pace(&self) -> f64 {
        self.elapsed.as_picos() as f64 / 1e3 / self.increments as f64
    }

    /// Returns the average nanoseconds for which the lock was held.
    pub fn section(&self) -> f64 {
        self.held.as_picos() as f64 / 1e3 / self.increments as f64
    }

    /// Returns `count` divided by the increments.
    pub fn each(&self, count: u64) -> f64 {
        count as f64 / self.increments as f64
    }
}

/// The counts of one thread.
struct Lap {
    /// The thread's start.
    began: Time,
    /// The increments that it made.
    increments: u64,
    /// Its longest time from asking for the lock to having it.
    longest_wait: Time,
    /// The total time for which it held the lock.
    held: Time,
    /// The time of the contest's last increment, if this thread made it.
    reached: Option<Time>,
}

/// Runs `contest` on `machine`, with a new lock of type `R`.
pub fn run<R: RawMutex + 'static>(
    machine: &Machine,
    contest: &Contest,
) -> Result<Standing, Failure> {
    let run = race::<R>(machine, contest, &simulation(machine, contest.seed))?;
    let goal = contest.increments;
    let (laps, statistics) = (run.result, run.statistics);
    let began = laps.iter().map(|lap| lap.began).min().unwrap_or_default();
    let reached = laps.iter().find_map(|lap| lap.reached).unwrap_or_default();
    let elapsed = reached.since(began);
    let counts: Vec<f64> = laps.iter().map(|lap| lap.increments as f64).collect();
    let counted: u64 = laps.iter().map(|lap| lap.increments).sum();
    assert_eq!(counted, goal, "the lock let two threads in at once");
    let crew = statistics.threads.iter().skip(1);
    let spent =
        |activity| -> f64 { crew.clone().map(|thread| thread.times.of(activity).as_secs()).sum() };
    let waiting = spent(Activity::Spinning) + spent(Activity::Stalled);
    let all = waiting + spent(Activity::Useful);
    Ok(Standing {
        increments: counted,
        elapsed,
        fairness: jain(&counts),
        longest_wait: laps.iter().map(|lap| lap.longest_wait).max().unwrap_or_default(),
        accesses: statistics.accesses,
        bus: (statistics.accesses.occupied.as_secs() / elapsed.as_secs()).min(1.0),
        waiting: waiting / all,
        held: laps.iter().map(|lap| lap.held).sum(),
    })
}

fn race<R: RawMutex + 'static>(
    machine: &Machine,
    contest: &Contest,
    simulation: &Simulation,
) -> Result<Run<Vec<Lap>>, Failure> {
    let (turn, goal, turns) = (turn(machine), contest.increments, contest.turns);
    together(simulation, contest.threads, turn, move || {
        let lock: lock_api::Mutex<R, Shared> = lock_api::Mutex::new(Shared::default());
        move |_| laps(&lock, goal, turns, turn)
    })
}

/// Draws the timeline of `contest`, from the first thread's start to the last increment.
pub fn draw<R: RawMutex + 'static>(
    machine: &Machine,
    contest: &Contest,
    (name, title): (&'static str, &str),
) -> Result<Drawn, Failure> {
    let run = race::<R>(machine, contest, &simulation(machine, contest.seed).timeline())?;
    let Run { result: laps, statistics, timeline, .. } = run;
    let timeline = timeline.expect("it was asked for");
    let began = laps.iter().map(|lap| lap.began).min().unwrap_or_default();
    let reached = laps.iter().find_map(|lap| lap.reached).unwrap_or(statistics.elapsed);
    let drawing = timeline.drawing(&statistics).rows(Rows::Threads).title(title);
    Ok(Drawn {
        name,
        title: title.to_owned(),
        picture: drawing.between(began, reached).to_string(),
        trace: timeline.chrome(&statistics),
    })
}

fn laps<R: RawMutex>(lock: &lock_api::Mutex<R, Shared>, goal: u64, turns: u32, turn: f64) -> Lap {
    let began = inside::time();
    let mut lap =
        Lap { began, increments: 0, longest_wait: Time::ZERO, held: Time::ZERO, reached: None };
    let turned = Private::default();
    loop {
        let asked = inside::time();
        let shared = lock.lock();
        let entered = inside::time();
        lap.longest_wait = lap.longest_wait.max(entered.since(asked));
        let before = shared.counter.read();
        if before >= goal {
            return lap;
        }
        shared.count(before, turn);
        if before + 1 == goal {
            lap.reached = Some(inside::time());
        }
        shared.work(turns, turn, &turned);
        lap.held += inside::time().since(entered);
        drop(shared);
        lap.increments += 1;
    }
}
