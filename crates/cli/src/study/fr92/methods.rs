//! The three methods, and what stands between them, over the crates of one machine: this file is compiled for this computer and for simulated ones.

use std::sync::Arc;

use super::super::points::{Measured, Method, Others, Setting};
use super::applications::iterations::{Grain, Lap, Team, Window, Yielding, compute_bound};
use super::gang::barrier::{Barrier, BitMask};
use super::machine::clock::Deadline;
use super::machine::wait::{Spin, WaitPolicy};
use super::machine::{thread, topology};

/// How a thread computes for so many nanoseconds.
pub(super) trait Compute: Fn(u64) + Clone + Send + Sync + 'static {}
impl<F: Fn(u64) + Clone + Send + Sync + 'static> Compute for F {}

/// What a member of a measured program brings home.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    lap: Lap,
    yields: u64,
}

/// A policy, and how often it has yielded.
trait Counted: WaitPolicy {
    fn yields(&self) -> u64 {
        0
    }
}

impl Counted for Spin {}
impl Counted for Yielding {
    fn yields(&self) -> u64 {
        Yielding::yields(*self)
    }
}

/// Measures `setting` with its threads on `processors`, one of each program on each.
pub(super) fn measure(
    setting: &Setting,
    processors: &[usize],
    compute: impl Compute,
) -> Result<Measured, String> {
    let programs = match setting.others {
        Others::Alike => setting.load,
        Others::Computing => 1,
    };
    // The others of a computing load are threads of their own, without gangs.
    let window = Arc::new(Window::new(
        setting.load * setting.members,
        setting.quantum + 2 * setting.round(),
        setting.round() * setting.rounds,
    ));
    let grain = Grain { least: setting.least, spread: setting.spread };
    let teams: Vec<_> = (0..programs as u64)
        .map(|program| Arc::new(Team::new(grain, setting.seed ^ (program << 32), window.clone())))
        .collect();
    let run = Run { setting, processors, window, teams };
    run.skew(&compute);
    let shares = match setting.method {
        Method::Busy => run.uncoordinated::<BitMask, Spin>(compute)?,
        Method::Yielding => run.uncoordinated::<BitMask, Yielding>(compute)?,
        other => return Err(format!("{}: not to be had here", other.name())),
    };
    run.sum(&shares)
}

/// A measurement on its way.
struct Run<'a> {
    setting: &'a Setting,
    processors: &'a [usize],
    window: Arc<Window>,
    teams: Vec<Arc<Team>>,
}

impl Run<'_> {
    /// On each processor a thread that computes for a part of a quantum: "to cause the different processors to start asynchronously".
    fn skew(&self, compute: &impl Compute) {
        let longest = self.setting.quantum.as_nanos() as u64;
        let grain = Grain { least: 0, spread: longest };
        for (index, &processor) in self.processors.iter().enumerate() {
            let compute = compute.clone();
            let part = grain.draw(self.setting.seed, index, 0);
            drop(thread::spawn(move || {
                let _kept = topology::pin(processor);
                compute(part);
            }));
        }
    }

    /// Threads that nobody coordinates, kept on their processors.
    fn uncoordinated<B: Barrier + 'static, P: Counted>(
        &self,
        compute: impl Compute,
    ) -> Result<Vec<Vec<Share>>, String> {
        let members = self.setting.members;
        let mut handles = Vec::new();
        for team in &self.teams {
            let barrier = B::with_members(members).map_err(|wrong| wrong.to_string())?;
            let barrier = Arc::new(barrier);
            for (index, &processor) in self.processors.iter().enumerate().take(members) {
                let (team, barrier, compute) = (team.clone(), barrier.clone(), compute.clone());
                handles.push(thread::spawn(move || {
                    let _kept = topology::pin(processor);
                    let mut place = barrier.place(index);
                    let mut yields = 0;
                    let lap = team.member(index, compute, || {
                        let mut policy = P::start();
                        let crossed = barrier.wait_at(&mut place, &mut policy, Deadline::NEVER);
                        yields += policy.yields();
                        crossed.map(|_| ())
                    });
                    lap.map(|lap| Share { lap, yields })
                }));
            }
        }
        let computing = self.computing(compute);
        let mut shares = handles.into_iter().map(|handle| match handle.join() {
            Ok(share) => share.map_err(|broken| broken.to_string()),
            Err(_) => Err("a thread of a program panicked".to_owned()),
        });
        let shares = shares.by_ref().collect::<Result<Vec<_>, _>>()?;
        for handle in computing {
            handle.join().map_err(|_| "a thread that only computes panicked".to_owned())?;
        }
        Ok(shares.chunks(members).map(<[Share]>::to_vec).collect())
    }

    /// The threads of programs that are not measured.
    fn computing(&self, compute: impl Compute) -> Vec<thread::JoinHandle<u64>> {
        let others = self.setting.load - self.teams.len();
        let places = (0..others).flat_map(|_| &self.processors[..self.setting.members]);
        let start = |&processor: &usize| {
            let (window, compute) = (self.window.clone(), compute.clone());
            thread::spawn(move || {
                let _kept = topology::pin(processor);
                compute_bound(&window, 100_000, compute)
            })
        };
        places.map(start).collect()
    }

    /// The mean iteration of all programs that were measured.
    fn sum(&self, programs: &[Vec<Share>]) -> Result<Measured, String> {
        let laps = || programs.iter().map(|members| members[0].lap);
        let iterations: u64 = laps().map(|lap| lap.iterations).sum();
        let nanos: u64 = laps().map(|lap| lap.nanos).sum();
        if iterations == 0 {
            let length = self.setting.round() * self.setting.rounds;
            return Err(format!("no iteration within {length:?}"));
        }
        let yields: u64 = programs.iter().flatten().map(|share| share.yields).sum();
        let waits: u64 = laps().map(|lap| lap.all).sum::<u64>() * (self.setting.members as u64 - 1);
        Ok(Measured {
            time: nanos as f64 / iterations as f64 / 1e6,
            iterations,
            alpha: yields as f64 / waits.max(1) as f64,
        })
    }
}
